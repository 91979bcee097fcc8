// Reload the page after events of the service. Only the server decides the visible content and its
// texts.
import { morph } from "./morph.js";
import { announce, spoken, stateChanges } from "./speech.js";
import { Stream } from "./stream.js";
import { paintTimes } from "./times.js";

/** Document event after each page update. */
export const SHOWN = "benchpool-shown";

const PAUSE_MS = 800;
/** Maximum share of time spent on page reloads, so that slow pages are requested less often. */
const SHARE = 1 / 8;
/** The same for pages with live curves, which show a value within two seconds. */
const LIVE_SHARE = 1 / 4;
const STALE_MS = 60_000;
/** Timeout of a page, so that one lost answer does not end all later updates. */
const PATIENCE_MS = 30_000;

/** Load a page as a document. Its scripts do not run. */
export function load(method, url, body = null) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open(method, url);
    request.responseType = "document";
    request.setRequestHeader("X-XSRFToken", document.documentElement.dataset.xsrf);
    request.onload = () => resolve({ status: request.status, page: request.response, url: request.responseURL });
    request.onerror = () => reject(new Error("The service does not answer. Try again later."));
    request.ontimeout = request.onerror;
    if (method === "GET") request.timeout = PATIENCE_MS;
    request.send(body);
  });
}

class Page {
  #timer = 0;
  #asked = 0;
  #took = 0;
  #loading = false;
  #again = false;

  /** Schedule a reload. Several calls result in one reload. */
  soon() {
    if (document.hidden) {
      this.#again = true;
      return;
    }
    if (this.#timer !== 0) return;
    const share = document.querySelector("main [data-live-curves]") ? LIVE_SHARE : SHARE;
    const wait = Math.max(0, this.#asked + Math.max(PAUSE_MS, this.#took / share) - Date.now());
    this.#timer = setTimeout(() => {
      this.#timer = 0;
      this.refresh();
    }, wait);
  }

  async refresh() {
    if (this.#loading) {
      this.#again = true;
      return;
    }
    this.#loading = true;
    this.#again = false;
    this.#asked = Date.now();
    try {
      const { status, page } = await load("GET", location.pathname + location.search);
      if (status === 200) this.show(page, { flash: false });
      else indicate(false, status === 503 ? "service not ready" : "please reload");
    } catch (error) {
      indicate(false, "reconnecting");
    } finally {
      this.#loading = false;
      this.#took = Date.now() - this.#asked;
      if (this.#again) this.soon();
    }
  }

  /**
   * Update the page to `wanted`. The message of an earlier action stays unless a new one arrives.
   */
  show(wanted, { flash }) {
    const main = wanted?.getElementById("main");
    if (!main) return;
    const before = stateChanges.look(document);
    const shownFlash = document.getElementById("flash");
    const newFlash = main.querySelector("#flash");
    if (!flash && shownFlash && newFlash) newFlash.replaceWith(shownFlash.cloneNode(true));
    morph(document.getElementById("main"), main);
    document.title = wanted.title;
    document.documentElement.dataset.xsrf = wanted.documentElement.dataset.xsrf ?? "";
    paintTimes(document);
    document.dispatchEvent(new Event(SHOWN));
    announce(stateChanges.since(before, document));
  }

  wake() {
    if (!document.hidden && (this.#again || Date.now() - this.#asked > STALE_MS)) this.soon();
  }
}

export function keepFresh() {
  const page = new Page();
  document.addEventListener("visibilitychange", () => page.wake());
  setInterval(() => page.wake(), STALE_MS / 4);
  listen(page);
  return page;
}

function listen(page) {
  const { root } = document.documentElement.dataset;
  const soon = () => page.soon();
  let missed = false;
  new Stream(() => `${root}api/v1/events?_xsrf=${encodeURIComponent(document.documentElement.dataset.xsrf)}`, {
    on: { job: soon, pool: soon, deleted: soon, reset: soon },
    opened() {
      indicate(true, "live");
      if (missed) page.soon();
      missed = true;
    },
    lost() {
      indicate(false, "reconnecting");
      missed = true;
    },
  });
}

function indicate(on, words) {
  const live = document.getElementById("live");
  if (live === null) return;
  live.toggleAttribute("data-on", on);
  live.textContent = words;
  spoken(live, on);
}
