// Times in the reader's zone on hover, and relative times that stay current. The texts are those of
// tests/phrases.json.

/** @param {number} seconds */
export function duration(seconds) {
  const whole = Math.max(0, Math.trunc(seconds));
  if (whole < 60) return `${whole} s`;
  const minutes = Math.trunc(whole / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.trunc(minutes / 60);
  if (hours < 24) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  const days = Math.trunc(hours / 24);
  return hours % 24 ? `${days} d ${hours % 24} h` : `${days} d`;
}

/** @param {number} at @param {number} now milliseconds */
export function relative(at, now) {
  const seconds = (now - at) / 1000;
  if (Math.abs(seconds) < 5) return "just now";
  return seconds > 0 ? `${duration(seconds)} ago` : `in ${duration(-seconds)}`;
}

const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });

/** Time within a sentence: to the minute, with its zone. */
const toMinute = new Intl.DateTimeFormat(undefined, {
  year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", timeZoneName: "short",
});

/** @param {ParentNode} root */
export function paintTimes(root) {
  const now = Date.now();
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = Date.parse(time.dateTime);
    if (Number.isNaN(at)) continue;
    const words = time.dataset.exact === undefined ? relative(at, now) : toMinute.format(at);
    if (time.textContent !== words) time.textContent = words;
    time.title = exact.format(at);
  }
}
