/** Words of a command line as typed. Pure. */

/** Split an argument line like a shell, without expansion. Return null for an open quote. */
export function splitArguments(line: string): string[] | null {
  const args: string[] = [];
  let current: string | null = null;
  let quote = '';
  for (let i = 0; i < line.length; i += 1) {
    const c = line[i]!;
    if (quote) {
      if (c === quote) {
        quote = '';
      } else if (c === '\\' && quote === '"' && /["\\$`]/.test(line[i + 1] ?? '')) {
        current = (current ?? '') + line[(i += 1)]!;
      } else {
        current = (current ?? '') + c;
      }
    } else if (c === '"' || c === "'") {
      quote = c;
      current ??= '';
    } else if (c === '\\' && i + 1 < line.length) {
      current = (current ?? '') + line[(i += 1)]!;
    } else if (/\s/.test(c)) {
      if (current !== null) {
        args.push(current);
        current = null;
      }
    } else {
      current = (current ?? '') + c;
    }
  }
  if (quote) {
    return null;
  }
  return current === null ? args : [...args, current];
}

/** Join arguments to a line that `splitArguments` splits into the same arguments. */
export function joinArguments(args: readonly string[]): string {
  const quoted = (arg: string) => `'${arg.replace(/'/g, `'"'"'`)}'`;
  return args.map(arg => (/^[\w@%+=:,./-]+$/.test(arg) ? arg : quoted(arg))).join(' ');
}
