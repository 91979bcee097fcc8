// Log bytes as text: control sequences are dropped, and a carriage return restarts its line. Same
// rules as log_text.py. Here the text arrives in chunks, so an incomplete sequence is held back.

const CONTROL = /\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-Z\\-_]?/g;
const OTHER = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g;
const UNFINISHED = /\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*)?$/;

export class LogText {
  #held = "";
  #line = "";

  /** @param {string} last unfinished line that is already shown */
  constructor(last) {
    this.#line = last;
  }

  /** Add a chunk. Return the whole lines to append and the unfinished line after them. */
  take(piece) {
    let text = this.#held + piece;
    const open = UNFINISHED.exec(text);
    this.#held = open && open[0].length < 4096 ? open[0] : "";
    text = text.slice(0, text.length - this.#held.length);
    if (text.endsWith("\r")) {
      this.#held = "\r" + this.#held;
      text = text.slice(0, -1);
    }
    const lines = (this.#line + text.replace(CONTROL, "").replaceAll("\r\n", "\n")).split("\n").map(lastWriting);
    this.#line = lines.pop();
    return { whole: lines.map((line) => `${line}\n`).join(""), line: this.#line };
  }
}

function lastWriting(line) {
  const parts = line.split("\r").filter((part) => part !== "");
  return (parts.at(-1) ?? "").replace(OTHER, "");
}
