// Follow the log on the job page. Scrolling stops when the reader scrolls up.
import { LogText } from "./logtext.js";
import { Stream } from "./stream.js";

const MOST_SIGNS = 2_000_000;
const NEAR_END = 24;

let follower = null;

/** Follow the shown log. It replaces the log of another attempt. */
export function followLog() {
  const box = document.getElementById("log");
  if (box === (follower?.box ?? null)) return;
  follower?.end();
  follower = null;
  if (box === null) return;
  follower = new Follower(box);
  box.scrollTop = box.scrollHeight;
  if (box.dataset.ended === undefined) follower.listen();
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
  }

  listen() {
    this.stream = new Stream(() => this.address(), {
      on: {
        log: (event) => {
          this.next = event.lastEventId || this.next;
          this.add(JSON.parse(event.data));
        },
        end: () => {
          this.stream.end();
          this.showState("The log of this attempt is complete.");
        },
      },
      opened: () => this.showState("Following."),
      lost: () => this.showState("The connection was lost. Reconnecting."),
    });
  }

  end() {
    this.stream?.end();
  }

  address() {
    const xsrf = encodeURIComponent(document.documentElement.dataset.xsrf);
    return `${this.box.dataset.stream}&offset=${this.next}&_xsrf=${xsrf}`;
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

  /** Show a state text, unless the page shows the state of a complete log. */
  showState(words) {
    const state = document.getElementById("logstate");
    if (state.dataset.ended === undefined) state.textContent = words;
  }
}
