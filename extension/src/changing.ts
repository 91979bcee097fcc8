/**
 * What a job that is there may still have otherwise: the rows of the table. Pure; the dialog of a
 * filled-in action draws it, `actions.ts` carries it out.
 */
import { isOnGpus } from './format';
import { CHANGEABLE, FILLED_ACTIONS, IChangeable } from './generated/actions';
import { namesIn, shown } from './filling';
import { count, exactly } from './phrases';
import type { IChangeRequest, IJob } from './tokens';

export const CHANGE = FILLED_ACTIONS.find(one => one.name === 'change')!;

/** What every place says of a priority. */
export const PRIORITY_HELP = CHANGE.fields.find(one => one.name === 'priority')!.help;

/** Why fields are as they are and stay: by the field, each a sentence. */
export type Notes = Readonly<Record<string, string>>;

/** What the dialog says of fields that stay; `fixed` is the scheduler's word which those are. */
export function staying(job: IJob, fixed: readonly string[]): Notes {
  return Object.fromEntries(fixed.map(name => [name, stays(job, name)]));
}

function stays(job: IJob, name: string): string {
  if (job.state === 'pausing') {
    return 'It leaves its GPUs now; change this when it waits.';
  }
  if (name === 'workers') {
    return `${rigid(job.workers)}; pause it first.`;
  }
  return 'It can change while the job waits; pause it first.';
}

/** What the dialog says of fields that may change, where more is to be said than the table has. */
export function remarks(job: IJob): Notes {
  return {
    workers: isOnGpus(job.state)
      ? 'More come when there is room; the last ones go at once.'
      : `Processes that train together, each with ${count(job.gpus, 'GPU')}.`
  };
}

function rigid(workers: number): string {
  return workers === 1
    ? 'It runs with its one worker'
    : `It runs with all of its ${workers} workers or none`;
}

/** A change with which a job would start now, and the words of its button. */
export interface IAdvised {
  name: string;
  wanted: IChangeRequest;
  label: string;
}

/** What the reason of a waiting job advises, where it may be changed. */
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

/** What was changed, as a sentence. */
export function outcome(job: IJob, wanted: IChangeRequest): string {
  const parts = CHANGEABLE.filter(row => row.name in wanted).map(row =>
    inWords(row, (wanted as Record<string, unknown>)[row.name])
  );
  return `“${job.name}” is to have ${parts.join(' and ')}.`;
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
