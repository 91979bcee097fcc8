/**
 * Words of a command line, as they are typed. Pure.
 */

/** Split a line of arguments as a shell would, without expanding anything; null if unclosed. */
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

/** Arguments as one line, which `splitArguments` splits into the same again. */
export function joinArguments(args: readonly string[]): string {
  const quoted = (arg: string) => `'${arg.replace(/'/g, `'"'"'`)}'`;
  return args.map(arg => (/^[\w@%+=:,./-]+$/.test(arg) ? arg : quoted(arg))).join(' ');
}
