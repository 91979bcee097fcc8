/** Code that loads a value of a job into a notebook. */

/** Cell above the new one. `ran`: whether it has an execution number. */
export interface ICellAbove {
  source: string;
  ran: boolean;
}

/** Statement at the start of a line that sets the name `benchpool`. */
const IMPORT = /^import[ \t]+(?:[^#;\n]*,[ \t]*)?benchpool(?:\.\w+)*[ \t]*(?:[,;#]|$)/m;

/** Return the line alone if a cell above has imported benchpool, else the import and the line. */
export function codeOf(line: string, above: readonly ICellAbove[]): string {
  const imported = above.some(cell => cell.ran && imports(cell.source));
  return imported ? line : `import benchpool\n\n${line}`;
}

/** A cell with a cell magic, such as `%%train`, may run elsewhere. */
function imports(source: string): boolean {
  return !source.trimStart().startsWith('%%') && IMPORT.test(source);
}
