/**
 * Terminal commands equivalent to buttons and dialogs. Pure. Verbs and options are from the action
 * table.
 */
import { JOB_VERBS } from './generated/actions';

/** Verb with its arguments in order, then its options. */
export interface IVerb {
  readonly words: string;
  readonly positional: readonly string[];
  readonly options?: Readonly<Record<string, string>>;
}

/** Placeholder for a value that is not filled in. */
export const LATER = '…';

type Given = Readonly<Record<string, string | number | undefined>>;

/** Return the command of a verb. `first`: the IDs that it applies to. */
export function command(verb: IVerb, first: readonly string[], given: Given): string {
  const values = verb.positional.flatMap(name => given[name] ?? []);
  const options = Object.entries(given).flatMap(([name, value]) =>
    value === undefined || verb.positional.includes(name)
      ? []
      : [verb.options?.[name] ?? `--${name}`, value]
  );
  return ['benchpool', verb.words, ...[...first, ...values, ...options].map(quoted)].join(' ');
}

/** Return the command for an action on a job, or an empty string without a verb. */
export function jobCommand(action: string, id: string, given: Given = {}): string {
  const verb = (JOB_VERBS as Readonly<Record<string, IVerb>>)[action];
  return verb ? command(verb, [id.slice(0, 8)], given) : '';
}

/** Quote a word for a shell. */
function quoted(word: string | number): string {
  const text = String(word);
  return /^[\w@%+=:,./…-]+$/.test(text) ? text : `'${text.replace(/'/g, `'\\''`)}'`;
}
