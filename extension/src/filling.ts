/**
 * Actions of the table that are filled in before: what a job has of it, and what is said after.
 */
import type { IActionField, IFilledAction } from './generated/actions';
import type { IJob } from './tokens';

/** What was filled in, by the name of the field. */
export type Filled = Record<string, string | number>;

/** What a job has now of what an action asks for. */
export function present(action: IFilledAction, job: IJob): Filled {
  const facts = job as unknown as Filled;
  return Object.fromEntries(action.fields.map(({ name }) => [name, facts[name] ?? '']));
}

/** What was filled in otherwise than it was before; null where nothing was. */
export function differing<F extends object>(before: F, filled: F): Partial<F> | null {
  const others = fields(filled).filter(([name, value]) => value !== before[name]);
  return others.length > 0 ? (Object.fromEntries(others) as Partial<F>) : null;
}

/** What is said when it was done; the table has the words. */
export function doneText(action: IFilledAction, job: IJob): string {
  const facts = job as unknown as Filled;
  return action.done.replace(/\{(\w+)\}/g, (_, name: string) => String(facts[name] ?? ''));
}

/** What there was before of that which became otherwise. */
export function former<F extends object>(before: F, changed: Partial<F>): Partial<F> {
  return Object.fromEntries(fields(before).filter(([name]) => name in changed)) as Partial<F>;
}

function fields<F extends object>(from: F): [keyof F & string, F[keyof F]][] {
  return Object.entries(from) as [keyof F & string, F[keyof F]][];
}

/** The id of an input on the page. */
export function idOf(action: IFilledAction, field: IActionField): string {
  return `benchpool-${action.name}-${field.name}`;
}
