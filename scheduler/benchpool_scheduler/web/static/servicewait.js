// Page of a service that is not ready: a long poll waits for a change of its state, and the service
// opens when it is ready.

const FIRST_RETRY_MS = 2000;
const LAST_RETRY_MS = 60_000;
const LOGIN_PAUSE_MS = 10_000;

const section = document.getElementById("service");
const { root, xsrf } = document.documentElement.dataset;
let failures = 0;

const pause = (ms) => new Promise((later) => setTimeout(later, ms));

async function ask() {
  const address = `${root}service-state/${section.dataset.name}?seen=${encodeURIComponent(section.dataset.seen)}`;
  const answer = await fetch(address, { headers: { "X-XSRFToken": xsrf }, cache: "no-store" });
  if ([401, 403, 404].includes(answer.status)) {
    await pause(LOGIN_PAUSE_MS); // the reloaded page shows the reason or redirects to the login
    return location.reload();
  }
  if (!answer.ok) throw new Error(`${answer.status}`);
  const now = await answer.json();
  failures = 0;
  if (now.ready) return location.reload();
  section.dataset.seen = now.seen;
  document.getElementById("service-state").textContent = now.heading;
  document.getElementById("service-sentence").textContent = now.sentence;
  return false;
}

async function follow() {
  for (;;) {
    if (document.hidden) {
      await new Promise((seen) => document.addEventListener("visibilitychange", seen, { once: true }));
    }
    try {
      if ((await ask()) !== false) return;
    } catch {
      const wait = Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** failures);
      failures += 1;
      await pause(wait);
    }
  }
}

follow();
