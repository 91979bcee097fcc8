/** Actions with fields: current values, requests, and confirmations. */
import { readSeconds, writtenSeconds } from './durations';
import type { IActionField, IFilledAction } from './generated/actions';
import type { IJob } from './tokens';

/** Filled-in values by field name. */
export type Filled = Record<string, string | number>;

/** Return the current values of a job for the fields of an action. */
export function present(action: IFilledAction, job: IJob): Filled {
  const facts = job as unknown as Record<string, unknown>;
  return Object.fromEntries(
    action.fields.map(field => [field.name, shown(field, facts[field.name])])
  );
}

/** Convert a field value to its input value. */
export function shown(field: IActionField, value: unknown): string | number {
  if (field.kind === 'names') {
    return ((value as string[] | undefined) ?? []).join(', ') || field.empty;
  }
  if (field.kind === 'duration' && typeof value === 'number') {
    return writtenSeconds(value);
  }
  return (value as string | number | null | undefined) ?? '';
}

/** Split names that are separated by commas. */
export function namesIn(field: IActionField, text: string): string[] {
  const names = text
    .split(',')
    .map(name => name.trim())
    .filter(name => name);
  return names.length === 1 && names[0] === field.empty ? [] : names;
}

/** Return the request for changed fields. An empty field is sent only if it is erasable. */
export function asked(action: IFilledAction, filled: Partial<Filled>): object {
  const found = action.fields
    .filter(({ name, erasable }) => name in filled && (erasable || !isEmpty(filled[name])))
    .map((field): [string, unknown] => {
      return [field.name, taken(field, filled[field.name]!)];
    });
  return Object.fromEntries(found);
}

/** Convert an input value to its request value. The dialog accepts only valid durations. */
function taken(field: IActionField, value: string | number): unknown {
  if (field.kind === 'duration') {
    return Math.round(readSeconds(String(value)) ?? NaN);
  }
  return field.kind === 'names' ? namesIn(field, String(value)) : value;
}

/** Convert a request to command options. */
export function optionsOf(action: IFilledAction, sent: object): Record<string, string | number> {
  const given = action.fields.flatMap((field): [string, string | number][] => {
    const value = (sent as Record<string, unknown>)[field.name];
    return value === undefined || Number.isNaN(value) ? [] : [[field.name, shown(field, value)]];
  });
  return Object.fromEntries(given);
}

/** Return whether an input is empty. An empty number input is NaN. */
export function isEmpty(value: unknown): boolean {
  return value === undefined || value === '' || Number.isNaN(value);
}

/** Return the changed fields, or null without a change. */
export function differing<F extends object>(before: F, filled: F): Partial<F> | null {
  const others = fields(filled).filter(
    ([name, value]) => !(value === before[name] || (isEmpty(value) && isEmpty(before[name])))
  );
  return others.length > 0 ? (Object.fromEntries(others) as Partial<F>) : null;
}

/** Return the confirmation text of an action, from the action table. */
export function doneText(action: IFilledAction, job: IJob): string {
  const facts = job as unknown as Filled;
  return action.done.replace(/\{(\w+)\}/g, (_, name: string) => String(facts[name] ?? ''));
}

/** Return the former values of the changed fields. */
export function former<F extends object>(before: F, changed: object): Partial<F> {
  return Object.fromEntries(fields(before).filter(([name]) => name in changed)) as Partial<F>;
}

function fields<F extends object>(from: F): [keyof F & string, F[keyof F]][] {
  return Object.entries(from) as [keyof F & string, F[keyof F]][];
}

/** Return the element ID of an input. */
export function idOf(action: IFilledAction, field: IActionField): string {
  return `benchpool-${action.name}-${field.name}`;
}
