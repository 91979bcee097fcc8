/**
 * Variables, processors and memory of a job, as they are typed in the dialog. Pure.
 */
import { splitArguments } from './argumentLine';

const PAIR = /^([A-Za-z_]\w*)=([^]*)$/;
/** Names of variables whose values are not kept in the notebook. */
const SECRET = /key|token|secret|passw|credential|auth/i;

/** The most that may be asked for of each worker; the OpenAPI document has the same. */
export const AMOUNTS = {
  cpus: { name: 'Processors', most: 10_000 },
  memory: { name: 'Memory', most: 1_000_000 }
} as const;

/** Variables by name from `A=1 B="two words"`; undefined where that is something else. */
export function variablesOf(line: string): Record<string, string> | undefined {
  const pairs = splitArguments(line)?.map(word => PAIR.exec(word));
  return pairs === undefined || pairs.includes(null)
    ? undefined
    : Object.fromEntries(pairs.map(pair => [pair![1]!, pair![2]!]));
}

/** Variables as one line, which `variablesOf` reads as the same again. */
export function variablesLine(variables: Readonly<Record<string, string>>): string {
  const quoted = (value: string) =>
    /^[\w@%+=:,./-]*$/.test(value) ? value : `'${value.replace(/'/g, `'"'"'`)}'`;
  return Object.entries(variables)
    .map(([name, value]) => `${name}=${quoted(value)}`)
    .join(' ');
}

/** What of the variables is kept for the next time: all whose name does not say that it is secret. */
export function keptVariables(line: string): string {
  const kept = Object.entries(variablesOf(line) ?? {}).filter(([name]) => !SECRET.test(name));
  return variablesLine(Object.fromEntries(kept));
}

/** A number that may be left open, which is 0; undefined for text that is none. */
export function amountOf(field: keyof typeof AMOUNTS, text: string): number | undefined {
  const value = Number(text.trim());
  return Number.isFinite(value) && value >= 0 && value <= AMOUNTS[field].most ? value : undefined;
}

/** Faults of these answers, each a sentence. */
export function faultsOf(answers: { env: string; cpus: string; memory: string }): {
  env?: string;
  cpus?: string;
  memory?: string;
} {
  const amount = (field: keyof typeof AMOUNTS) => {
    const { name, most } = AMOUNTS[field];
    return amountOf(field, answers[field]) === undefined
      ? { [field]: `${name}: a number from 0 to ${most}, or empty for what the pool gives.` }
      : {};
  };
  return {
    ...amount('cpus'),
    ...amount('memory'),
    ...(variablesOf(answers.env) === undefined
      ? { env: 'Variables: write NAME=VALUE, with quotes around blanks, and blanks between them.' }
      : {})
  };
}
