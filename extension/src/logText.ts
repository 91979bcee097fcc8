/**
 * The text of a live log as a terminal would leave it: bounded, without control sequences, a
 * carriage return begins its line anew.
 */

/** Bounds of what a page keeps; the whole log is there for download. */
export const MAX_LINES = 5000;
const BLOCK_LINES = 200;
const MAX_LINE_CHARACTERS = 20_000;

const CONTROL = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g;
const PARTIAL_CONTROL = /\u001b(?:\[[0-?]*[ -/]*|\][^\u0007\u001b]*)?$/;

/** Finished lines in blocks that never change once full, so that a view can keep them. */
export interface ILogBlock {
  key: number;
  text: string;
}

export class LogText {
  /** Lines that were dropped from the beginning, by this page or by the service. */
  get dropped(): number {
    return this._dropped;
  }

  get isEmpty(): boolean {
    return this._blocks.length === 0 && this._open.length === 0 && this._line === '';
  }

  /** Take the next piece of the log. */
  push(piece: string): void {
    const text = this._rest + piece;
    const partial = PARTIAL_CONTROL.exec(text);
    const end = partial ? partial.index : text.length;
    this._rest = text.slice(end);
    const lines = text.slice(0, end).replace(CONTROL, '').replace(/\r\n/g, '\n').split('\n');
    lines.forEach((line, i) => {
      if (i > 0) {
        this._closeLine();
      }
      this._extend(line);
    });
  }

  /** Say that something is missing here. */
  skip(bytes: number): void {
    this.push(`\n… ${bytes} bytes left out: the log is longer than is kept …\n`);
  }

  blocks(): ILogBlock[] {
    const tail = [...this._open, this._shownLine()].join('\n');
    return [...this._blocks, { key: this._nextKey, text: tail }];
  }

  toString(): string {
    return this.blocks()
      .map(block => block.text)
      .join('');
  }

  private _extend(text: string): void {
    // A trailing carriage return may be followed by a line feed in the next piece.
    const joined = this._line + text;
    const cut = joined.lastIndexOf('\r', joined.length - 2);
    this._line = (cut < 0 ? joined : joined.slice(cut + 1)).slice(-MAX_LINE_CHARACTERS);
  }

  private _shownLine(): string {
    return this._line.replace(/\r$/, '');
  }

  private _closeLine(): void {
    this._open.push(this._shownLine());
    this._line = '';
    if (this._open.length < BLOCK_LINES) {
      return;
    }
    this._blocks.push({ key: this._nextKey++, text: `${this._open.join('\n')}\n` });
    this._open = [];
    while (this._blocks.length * BLOCK_LINES > MAX_LINES) {
      this._blocks.shift();
      this._dropped += BLOCK_LINES;
    }
  }

  private _blocks: ILogBlock[] = [];
  private _open: string[] = [];
  private _line = '';
  private _rest = '';
  private _nextKey = 0;
  private _dropped = 0;
}
