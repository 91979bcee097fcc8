/**
 * Text of a live log as a terminal shows it: bounded, without control sequences, with carriage
 * returns applied.
 */

/** Maximum number of lines in a page. The whole log is available for download. */
export const MAX_LINES = 5000;
const BLOCK_LINES = 200;
const MAX_LINE_CHARACTERS = 20_000;

const CONTROL = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g;
const PARTIAL_CONTROL = /\u001b(?:\[[0-?]*[ -/]*|\][^\u0007\u001b]*)?$/;

/** Block of finished lines. A full block never changes, so that a view can cache it. */
export interface ILogBlock {
  key: number;
  text: string;
}

export class LogText {
  /** Return the number of lines that this page dropped from the start. */
  get dropped(): number {
    return this._dropped;
  }

  get isEmpty(): boolean {
    return this._blocks.length === 0 && this._open.length === 0 && this._line === '';
  }

  /** Add the next chunk of the log. */
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

  /** Insert a note about missing bytes. */
  skip(bytes: number): void {
    this.push(`\n… ${bytes} bytes left out: the log exceeds its size limit …\n`);
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
    // A line feed in the next chunk may follow a trailing carriage return.
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
