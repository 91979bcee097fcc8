/**
 * Fields of an existing job that can change: the rows of the change action. Pure. `formDialog.tsx`
 * shows them, `actions.ts` sends them.
 */
import { isOnGpus } from './format';
import { CHANGEABLE, FILLED_ACTIONS, IChangeable } from './generated/actions';
import { namesIn, shown } from './filling';
import { count, exactly } from './phrases';
import type { IChangeRequest, IJob } from './tokens';

export const CHANGE = FILLED_ACTIONS.find(one => one.name === 'change')!;

/** Help text of the priority, shared by all views. */
export const PRIORITY_HELP = CHANGE.fields.find(one => one.name === 'priority')!.help;

/** Notes by field name, one sentence each. */
export type Notes = Readonly<Record<string, string>>;

/** Return why fields cannot change. `fixed`: their names, from the scheduler. */
export function staying(job: IJob, fixed: readonly string[]): Notes {
  return Object.fromEntries(fixed.map(name => [name, stays(job, name)]));
}

function stays(job: IJob, name: string): string {
  if (job.state === 'pausing') {
    return 'The job is leaving its GPUs. Change this when it waits.';
  }
  if (name === 'workers') {
    return `${rigid(job.workers)}. Pause it first.`;
  }
  return 'This can change only while the job waits. Pause it first.';
}

/** Return additional notes on fields that can change. */
export function remarks(job: IJob): Notes {
  return {
    workers: isOnGpus(job.state)
      ? 'Added workers start when GPUs are free; the last workers are removed at once.'
      : `Processes that train together, each with ${count(job.gpus, 'GPU')}.`
  };
}

function rigid(workers: number): string {
  return workers === 1
    ? 'The job runs with exactly 1 worker'
    : `The job runs with all of its ${workers} workers or none`;
}

/** A change with which a job would start now, with its button label. */
export interface IAdvised {
  name: string;
  wanted: IChangeRequest;
  label: string;
}

/** Return the changes that the reason of a waiting job suggests, if the job can change. */
export function advised(job: IJob): IAdvised[] {
  if (job.state !== 'queued' || !job.actions?.includes('change')) {
    return [];
  }
  const found: IAdvised[] = [];
  for (const row of CHANGEABLE) {
    const value = row.advised ? job.reason?.numbers[row.advised] : null;
    if (typeof value === 'number' || typeof value === 'string') {
      const words = typeof value === 'number' ? pressed(row, value) : value;
      const each = row.name === 'gpus' && job.workers > 1 ? ' for each worker' : '';
      found.push({
        name: row.name,
        wanted: { [row.name]: asAsked(row.name, value) },
        label: row.press.replace('{value}', words) + each
      });
    }
  }
  return found;
}

function pressed(row: IChangeable, value: number): string {
  return row.unit ? count(value, row.unit) : exactly(value);
}

function asAsked(name: string, value: string | number): string | number | string[] {
  const field = CHANGE.fields.find(one => one.name === name);
  return field?.kind === 'names' ? namesIn(field, String(value)) : value;
}

/** Return a sentence about the changed fields. */
export function outcome(job: IJob, wanted: IChangeRequest): string {
  const parts = CHANGEABLE.filter(row => row.name in wanted).map(row =>
    inWords(row, (wanted as Record<string, unknown>)[row.name])
  );
  return `“${job.name}” has new settings: ${parts.join(', ')}.`;
}

function inWords(row: IChangeable, value: unknown): string {
  if (row.unit) {
    return count(Number(value), row.unit);
  }
  if (row.name.endsWith('_s')) {
    return `${row.noun} ${exactly(Number(value))}`;
  }
  const field = CHANGE.fields.find(one => one.name === row.name);
  const text = field ? shown(field, value) : String(value);
  return text === field?.empty ? `${text} ${row.noun}` : `${row.noun} ${text}`;
}
