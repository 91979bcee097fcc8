/**
 * Places in code that a log names, so that they can be opened. Pure.
 */

/** A line of a cell, by the cell's number on the screen, or of a file. */
export interface ILogLine {
  cell: number | null;
  file: string | null;
  line: number;
}

/** A piece of a log; with a place it can be opened. */
export interface ILogPiece {
  text: string;
  place: ILogLine | null;
}

/** A cell of a notebook, a file as Python names it, and one as IPython does. */
const PLACE =
  /\bcell (\d{1,6}), line (\d{1,7})|\bFile (?:"(\/[^"\n]{1,1000})", line (\d{1,7})|([~/][^"\n:]{1,1000}):(\d{1,7}))/gi;
const LIBRARY = /\/(?:site|dist)-packages\/|\/lib\/python3[\d.]*\//;

/** A log in pieces, those that name a place by themselves; libraries are none of the user's. */
export function placesIn(text: string): ILogPiece[] {
  const pieces: ILogPiece[] = [];
  let from = 0;
  for (const found of text.matchAll(PLACE)) {
    const [whole, cell, line, quoted, quotedLine, bare, bareLine] = found;
    const file = quoted ?? bare;
    if (file !== undefined && LIBRARY.test(file)) {
      continue;
    }
    const place = {
      cell: cell === undefined ? null : Number(cell),
      file: file ?? null,
      line: Number(line ?? quotedLine ?? bareLine)
    };
    pieces.push({ text: text.slice(from, found.index), place: null }, { text: whole, place });
    from = found.index + whole.length;
  }
  return [...pieces, { text: text.slice(from), place: null }].filter(piece => piece.text !== '');
}
