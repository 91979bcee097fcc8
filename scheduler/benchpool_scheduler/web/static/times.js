// Times in the reader's zone on hover, and relative words that stay true; the words are those of words.py.

/** @param {number} seconds */
export function duration(seconds) {
  const whole = Math.max(0, Math.trunc(seconds));
  if (whole < 60) return `${whole} s`;
  const minutes = Math.trunc(whole / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.trunc(minutes / 60);
  if (hours < 24) return `${hours} h ${String(minutes % 60).padStart(2, "0")} min`;
  return `${Math.trunc(hours / 24)} d ${hours % 24} h`;
}

/** @param {number} at @param {number} now milliseconds */
export function relative(at, now) {
  const seconds = (now - at) / 1000;
  if (Math.abs(seconds) < 5) return "just now";
  return seconds > 0 ? `${duration(seconds)} ago` : `in ${duration(-seconds)}`;
}

const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });

/** @param {ParentNode} root */
export function paintTimes(root) {
  const now = Date.now();
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = Date.parse(time.dateTime);
    if (Number.isNaN(at)) continue;
    const words = relative(at, now);
    if (time.textContent !== words) time.textContent = words;
    time.title = exact.format(at);
  }
}
