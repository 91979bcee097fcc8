/**
 * What to type in a terminal for the same as a button or a dialog does. Pure; verbs and options
 * come from the table of operations.
 */
import { JOB_VERBS } from './generated/actions';

/** A verb with what it takes: values in its order, then options. */
export interface IVerb {
  readonly words: string;
  readonly positional: readonly string[];
  readonly options?: Readonly<Record<string, string>>;
}

/** What is filled in later. */
export const LATER = '…';

type Given = Readonly<Record<string, string | number | undefined>>;

/** The command of a verb; `first` are the ids that it is about. */
export function command(verb: IVerb, first: readonly string[], given: Given): string {
  const values = verb.positional.flatMap(name => given[name] ?? []);
  const options = Object.entries(given).flatMap(([name, value]) =>
    value === undefined || verb.positional.includes(name)
      ? []
      : [verb.options?.[name] ?? `--${name}`, value]
  );
  return ['benchpool', verb.words, ...[...first, ...values, ...options].map(quoted)].join(' ');
}

/** The command for an action on a job; empty where the terminal has no verb of that name. */
export function jobCommand(action: string, id: string, given: Given = {}): string {
  const verb = (JOB_VERBS as Readonly<Record<string, IVerb>>)[action];
  return verb ? command(verb, [id.slice(0, 8)], given) : '';
}

/** A word as a shell takes it for one. */
function quoted(word: string | number): string {
  const text = String(word);
  return /^[\w@%+=:,./…-]+$/.test(text) ? text : `'${text.replace(/'/g, `'\\''`)}'`;
}
