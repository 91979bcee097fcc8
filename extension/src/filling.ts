/**
 * Actions of the table that are filled in before: what a job has of it, and what is said after.
 */
import { readSeconds, writtenSeconds } from './durations';
import type { IActionField, IFilledAction } from './generated/actions';
import type { IJob } from './tokens';

/** What was filled in, by the name of the field. */
export type Filled = Record<string, string | number>;

/** What a job has now of what an action asks for. */
export function present(action: IFilledAction, job: IJob): Filled {
  const facts = job as unknown as Record<string, unknown>;
  return Object.fromEntries(
    action.fields.map(field => [field.name, shown(field, facts[field.name])])
  );
}

/** The value of a field as it is filled in. */
export function shown(field: IActionField, value: unknown): string | number {
  if (field.kind === 'names') {
    return ((value as string[] | undefined) ?? []).join(', ') || field.empty;
  }
  if (field.kind === 'duration' && typeof value === 'number') {
    return writtenSeconds(value);
  }
  return (value as string | number | null | undefined) ?? '';
}

/** Names as they were filled in, with commas between them. */
export function namesIn(field: IActionField, text: string): string[] {
  const names = text
    .split(',')
    .map(name => name.trim())
    .filter(name => name);
  return names.length === 1 && names[0] === field.empty ? [] : names;
}

/** What is sent of what was filled in otherwise; what is emptied and not erasable asks for nothing. */
export function asked(action: IFilledAction, filled: Partial<Filled>): object {
  const found = action.fields
    .filter(({ name, erasable }) => name in filled && (erasable || !isEmpty(filled[name])))
    .map((field): [string, unknown] => {
      return [field.name, taken(field, filled[field.name]!)];
    });
  return Object.fromEntries(found);
}

/** What was filled in as it is sent; the dialog lets nothing pass that is no length of time. */
function taken(field: IActionField, value: string | number): unknown {
  if (field.kind === 'duration') {
    return Math.round(readSeconds(String(value)) ?? NaN);
  }
  return field.kind === 'names' ? namesIn(field, String(value)) : value;
}

/** What is sent, as the options of a command take it. */
export function optionsOf(action: IFilledAction, sent: object): Record<string, string | number> {
  const given = action.fields.flatMap((field): [string, string | number][] => {
    const value = (sent as Record<string, unknown>)[field.name];
    return value === undefined || Number.isNaN(value) ? [] : [[field.name, shown(field, value)]];
  });
  return Object.fromEntries(given);
}

/** Whether an input holds nothing; a number that is not there is NaN. */
export function isEmpty(value: unknown): boolean {
  return value === undefined || value === '' || Number.isNaN(value);
}

/** What was filled in otherwise than it was before; null where nothing was. */
export function differing<F extends object>(before: F, filled: F): Partial<F> | null {
  const others = fields(filled).filter(
    ([name, value]) => !(value === before[name] || (isEmpty(value) && isEmpty(before[name])))
  );
  return others.length > 0 ? (Object.fromEntries(others) as Partial<F>) : null;
}

/** What is said when it was done; the table has the words. */
export function doneText(action: IFilledAction, job: IJob): string {
  const facts = job as unknown as Filled;
  return action.done.replace(/\{(\w+)\}/g, (_, name: string) => String(facts[name] ?? ''));
}

/** What there was before of that which became otherwise. */
export function former<F extends object>(before: F, changed: object): Partial<F> {
  return Object.fromEntries(fields(before).filter(([name]) => name in changed)) as Partial<F>;
}

function fields<F extends object>(from: F): [keyof F & string, F[keyof F]][] {
  return Object.entries(from) as [keyof F & string, F[keyof F]][];
}

/** The id of an input on the page. */
export function idOf(action: IFilledAction, field: IActionField): string {
  return `benchpool-${action.name}-${field.name}`;
}
