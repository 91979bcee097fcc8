/** Trials of a sweep as one list entry, with their texts. Pure. */
import { metric, reportsOf } from './curveModel';
import { grouped, IGroup } from './narrowing';
import type { IJob, ISweep, ITrialRow } from './tokens';

/** Listed trials of a sweep, newest first. */
export interface ISweepEntry {
  sweep: string;
  name: string;
  array: boolean;
  trials: readonly IJob[];
}

/** Return the nouns for a sweep and its runs: an array has tasks. */
export function kindOf(array: boolean): { kind: 'sweep' | 'array'; each: 'trial' | 'task' } {
  return array ? { kind: 'array', each: 'task' } : { kind: 'sweep', each: 'trial' };
}

export type IEntry = IGroup | ISweepEntry;

export function isSweep(entry: IEntry): entry is ISweepEntry {
  return 'sweep' in entry;
}

/**
 * Return the list entries: each sweep once, at the position of its newest trial. `jobs`: newest
 * first.
 */
export function entries(jobs: readonly IJob[]): IEntry[] {
  const trials = new Map<string, IJob[]>();
  for (const job of jobs) {
    if (job.trial) {
      trials.set(job.trial.sweep, [...(trials.get(job.trial.sweep) ?? []), job]);
    }
  }
  const alone = jobs.filter(job => !job.trial);
  const places = new Map(jobs.map((job, place) => [job.id, place]));
  const placeOf = (entry: IEntry): number =>
    places.get(isSweep(entry) ? entry.trials[0]!.id : entry.job.id) ?? 0;
  const sweeps = [...trials].map(([sweep, of]) => ({
    sweep,
    name: of[0]!.trial!.name,
    array: of[0]!.trial!.array,
    trials: of
  }));
  return [...grouped(alone), ...sweeps].sort((a, b) => placeOf(a) - placeOf(b));
}

/** Return a key that changes with the listed trials, to reload the sweep. */
export function standOf(entry: ISweepEntry): string {
  return JSON.stringify(entry.trials.map(job => [job.id, job.state, reportsOf(job)]));
}

/** Return whether a sweep is under way and none of its trials is. */
export function isIdle(sweep: ISweep | null): boolean {
  return sweep !== null && sweep.state !== 'over' && sweep.trials.every(it => it.state !== 'open');
}

/** Return the number of a trial, or the task number in an array. */
export function numberOf(sweep: ISweep, row: ITrialRow): string {
  return String(sweep.plan.array ? (row.parameters.array_task_id ?? row.number) : row.number);
}

/** Return the values of a trial with their names; numbers with at most four digits. */
function valuesOf(row: ITrialRow): string[] {
  return Object.entries(row.parameters).map(([name, value]) => {
    const isDrawn = typeof value === 'number' && !Number.isInteger(value);
    return `${name} ${String(isDrawn ? Number(value.toPrecision(4)) : value)}`;
  });
}

/** Return the values and metric of a trial: `lr 0.01, seed 2: loss 0.21 at step 40`. */
export function trialWords(sweep: ISweep, row: ITrialRow): string {
  if (sweep.plan.array) {
    return '';
  }
  const values = valuesOf(row);
  const result =
    row.value === null || !sweep.plan.metric
      ? ''
      : `: ${sweep.plan.metric} ${metric(row.value)} at step ${row.step ?? 0}`;
  return `${values.join(', ')}${result}`;
}

/** Return the trials that have jobs as chart lines, best first. */
export function runsOf(sweep: ISweep): { id: string; label: string }[] {
  return sweep.trials.flatMap(row => {
    const values = valuesOf(row);
    const label = sweep.plan.array ? `task ${numberOf(sweep, row)}` : values.join(', ');
    return row.job === null ? [] : [{ id: row.job, label }];
  });
}

/** Return the state of a trial: its job state while it runs, else its end. */
export function trialState(row: ITrialRow): string {
  return row.state === 'open' && row.job_state ? row.job_state : row.state.replace('-', ' ');
}

/** Return the losses of stopping a sweep, for its confirmation. */
export function stopWords(sweep: ISweep): string {
  const open = sweep.trials.filter(row => row.state === 'open').length;
  const { each } = kindOf(sweep.plan.array);
  if (open === 0) {
    return `No further ${each} starts.`;
  }
  const end = open === 1 ? `1 ${each} under way ends` : `${open} ${each}s under way end`;
  return `No further ${each} starts, and ${end}. Saved files and reported metrics stay.`;
}
