// Follows the log of the job's page; stops scrolling along when the reader scrolls up.
import { LogText } from "./logtext.js";
import { Stream } from "./stream.js";

const MOST_SIGNS = 2_000_000;
const NEAR_END = 24;

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
  }

  listen() {
    const stream = new Stream(() => this.address(), {
      on: {
        log: (event) => {
          this.next = event.lastEventId || this.next;
          this.add(JSON.parse(event.data));
        },
        end: () => {
          stream.end();
          this.say("The log is complete.");
        },
      },
      opened: () => this.say("Following."),
      lost: () => this.say("The connection was lost; trying again."),
    });
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

  say(words) {
    document.getElementById("logstate").textContent = words;
  }
}
