// Follows the log of the job's page; stops scrolling along when the reader scrolls up.
import { LogText } from "./logtext.js";

const MOST_SIGNS = 2_000_000;
const NEAR_END = 24;
const RETRY_MS = 5000;

export function followLog() {
  const box = document.getElementById("log");
  if (box === null) return;
  box.scrollTop = box.scrollHeight;
  if (box.dataset.ended === undefined) new Follower(box).listen();
}

class Follower {
  constructor(box) {
    this.box = box;
    const shown = box.textContent;
    const cut = shown.lastIndexOf("\n") + 1;
    this.whole = document.createTextNode(shown.slice(0, cut));
    this.last = document.createTextNode(shown.slice(cut));
    box.replaceChildren(this.whole, this.last);
    this.text = new LogText(this.last.data);
    this.next = box.dataset.next;
    this.say("Following.");
  }

  listen() {
    const xsrf = encodeURIComponent(document.documentElement.dataset.xsrf);
    const events = new EventSource(`${this.box.dataset.stream}&offset=${this.next}&_xsrf=${xsrf}`);
    events.addEventListener("log", (event) => {
      this.next = event.lastEventId || this.next;
      this.add(JSON.parse(event.data));
    });
    events.addEventListener("end", () => {
      events.close();
      this.say("The log is complete.");
    });
    events.onerror = () => {
      if (events.readyState !== EventSource.CLOSED) return;
      this.say("The connection was lost; trying again.");
      setTimeout(() => this.listen(), RETRY_MS);
    };
    events.onopen = () => this.say("Following.");
    addEventListener("pagehide", () => events.close(), { once: true });
  }

  add({ text, skipped }) {
    const { box } = this;
    const follows = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_END;
    if (skipped) this.whole.appendData(`[${skipped} bytes left out: the log reached its size limit]\n`);
    const { whole, line } = this.text.take(text);
    this.whole.appendData(whole);
    this.last.data = line;
    if (this.whole.length > MOST_SIGNS) {
      const end = this.whole.data.indexOf("\n", this.whole.length - MOST_SIGNS / 2) + 1;
      this.whole.deleteData(0, end);
    }
    if (follows) box.scrollTop = box.scrollHeight;
  }

  say(words) {
    document.getElementById("logstate").textContent = words;
  }
}
