/** Code places in a log, so that the page can open them. Pure. */

/** Line of a file, or of a cell by its number on the screen. */
export interface ILogLine {
  cell: number | null;
  file: string | null;
  line: number;
}

/** Part of a log. With a place, it is a link. */
export interface ILogPiece {
  text: string;
  place: ILogLine | null;
}

/** A cell of a notebook, a file in the format of Python, or a file in the format of IPython. */
const PLACE =
  /\bcell (\d{1,6}), line (\d{1,7})|\bFile (?:"(\/[^"\n]{1,1000})", line (\d{1,7})|([~/][^"\n:]{1,1000}):(\d{1,7}))/gi;
const LIBRARY = /\/(?:site|dist)-packages\/|\/lib\/python3[\d.]*\//;

/** Split a log into parts, with each place as its own part. Library files are plain text. */
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
