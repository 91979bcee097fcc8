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

/** What is otherwise than the job has it; null where nothing is. */
export function differing(action: IFilledAction, job: IJob, filled: Filled): Filled | null {
  const before = present(action, job);
  const others = Object.entries(filled).filter(([name, value]) => value !== before[name]);
  return others.length > 0 ? Object.fromEntries(others) : null;
}

/** What is said when it was done; the table has the words. */
export function doneText(action: IFilledAction, job: IJob): string {
  const facts = job as unknown as Filled;
  return action.done.replace(/\{(\w+)\}/g, (_, name: string) => String(facts[name] ?? ''));
}

/** What the job had before of that which became otherwise. */
export function former(action: IFilledAction, before: IJob, filled: Filled): Filled {
  const had = Object.entries(present(action, before));
  return Object.fromEntries(had.filter(([name]) => name in filled));
}

/** The id of an input on the page. */
export function idOf(action: IFilledAction, field: IActionField): string {
  return `benchpool-${action.name}-${field.name}`;
}
