/** Durations as typed, shared with Python: `90`, `45s`, `90m`, `1h30m`. */

const UNIT_S: Readonly<Record<string, number>> = { d: 86_400, h: 3600, m: 60, min: 60, s: 1 };
const PART = /(\d{1,9}(?:\.\d{1,9})?)\s*(min|[dhms])/g;

/** Value of the `pattern` attribute of an input. The service checks the bounds. */
export const PATTERN =
  '\\s*(\\d{1,12}|(\\d{1,9}([.]\\d{1,9})?\\s*([mM][iI][nN]|[dhmsDHMS])\\s*)+)\\s*';

/** Parse a duration in seconds, or return null. A number without a unit is seconds. */
export function readSeconds(text: string): number | null {
  const plain = text.trim().toLowerCase();
  if (/^\d{1,12}$/.test(plain)) {
    return Number(plain);
  }
  if (plain === '' || plain.replace(PART, '').trim() !== '') {
    return null;
  }
  let total = 0;
  for (const [, amount, unit] of plain.matchAll(PART)) {
    total += Number(amount) * UNIT_S[unit!]!;
  }
  return total;
}

/** Format seconds for a form, so that they parse to the same number. */
export function writtenSeconds(seconds: number): string {
  let rest = seconds;
  let text = '';
  for (const unit of ['d', 'h', 'm', 's']) {
    const size = UNIT_S[unit]!;
    const amount = Math.floor(rest / size);
    rest -= amount * size;
    text += amount > 0 ? `${amount}${unit}` : '';
  }
  return text || '0s';
}
