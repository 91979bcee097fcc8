/** Variables, CPUs and memory of a job as typed in the dialog. Pure. */
import { splitArguments } from './argumentLine';

const PAIR = /^([A-Za-z_]\w*)=([^]*)$/;
/** Pattern of variable names whose values are not stored in the notebook. */
const SECRET = /key|token|secret|passw|credential|auth/i;

/** Maximum CPUs and memory per worker, as in the OpenAPI document. */
export const AMOUNTS = {
  cpus: { name: 'Processors', most: 10_000 },
  memory: { name: 'Memory', most: 1_000_000 }
} as const;

/** Parse variables such as `A=1 B="two words"`. Return undefined for other texts. */
export function variablesOf(line: string): Record<string, string> | undefined {
  const pairs = splitArguments(line)?.map(word => PAIR.exec(word));
  return pairs === undefined || pairs.includes(null)
    ? undefined
    : Object.fromEntries(pairs.map(pair => [pair![1]!, pair![2]!]));
}

/** Format variables as a line that `variablesOf` parses to the same variables. */
export function variablesLine(variables: Readonly<Record<string, string>>): string {
  const quoted = (value: string) =>
    /^[\w@%+=:,./-]*$/.test(value) ? value : `'${value.replace(/'/g, `'"'"'`)}'`;
  return Object.entries(variables)
    .map(([name, value]) => `${name}=${quoted(value)}`)
    .join(' ');
}

/** Return the variables to remember: those whose names do not indicate a secret. */
export function keptVariables(line: string): string {
  const kept = Object.entries(variablesOf(line) ?? {}).filter(([name]) => !SECRET.test(name));
  return variablesLine(Object.fromEntries(kept));
}

/** Parse an amount. Return 0 for an empty text and undefined for an invalid one. */
export function amountOf(field: keyof typeof AMOUNTS, text: string): number | undefined {
  const value = Number(text.trim());
  return Number.isFinite(value) && value >= 0 && value <= AMOUNTS[field].most ? value : undefined;
}

/** Return the faults of these answers, one sentence each. */
export function faultsOf(answers: { env: string; cpus: string; memory: string }): {
  env?: string;
  cpus?: string;
  memory?: string;
} {
  const amount = (field: keyof typeof AMOUNTS) => {
    const { name, most } = AMOUNTS[field];
    return amountOf(field, answers[field]) === undefined
      ? { [field]: `${name}: a number from 0 to ${most}, or empty for the default of the pool.` }
      : {};
  };
  return {
    ...amount('cpus'),
    ...amount('memory'),
    ...(variablesOf(answers.env) === undefined
      ? { env: 'Variables: enter NAME=VALUE, separated by spaces. Quote values with spaces.' }
      : {})
  };
}
