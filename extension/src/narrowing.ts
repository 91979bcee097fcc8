/**
 * Filter and groups of the job list: search, states and clearing. Earlier jobs with the same name
 * are folded below the newest one.
 */
import { isTerminal } from './format';
import { labelsOf } from './labels';
import type { IJob } from './tokens';

/** Groups of states in the filter, with their labels. */
export const STATE_CHOICES = {
  any: 'all states',
  live: 'not ended',
  ended: 'ended',
  failed: 'failed'
} as const;

export type StateChoice = keyof typeof STATE_CHOICES;

/**
 * Filter of the list. `clearedAt`: jobs that ended up to this time are hidden, in milliseconds, 0
 * for none.
 */
export interface INarrowing {
  search: string;
  states: StateChoice;
  clearedAt: number;
}

export const EVERYTHING: INarrowing = { search: '', states: 'any', clearedAt: 0 };

/** Return the jobs that contain all search words, have the selected states and are not cleared. */
export function narrowed(jobs: readonly IJob[], by: INarrowing): readonly IJob[] {
  const words = by.search
    .toLowerCase()
    .split(/\s+/)
    .filter(word => word);
  return jobs.filter(
    job => hasState(job, by.states) && !isCleared(job, by.clearedAt) && hasWords(job, words)
  );
}

/** Return the number of cleared jobs. */
export function countCleared(jobs: readonly IJob[], clearedAt: number): number {
  return jobs.filter(job => isCleared(job, clearedAt)).length;
}

/** A job of the list. `earlier`: ended jobs of the same name and user that were sent before. */
export interface IGroup {
  job: IJob;
  earlier: readonly IJob[];
}

/** Group jobs of the same name, newest first. Jobs that have not ended are never folded. */
export function grouped(jobs: readonly IJob[]): IGroup[] {
  const heads = new Map<string, { job: IJob; earlier: IJob[] }>();
  const groups: IGroup[] = [];
  for (const job of jobs) {
    const key = JSON.stringify([job.user, job.project, job.name]);
    const head = heads.get(key);
    if (head && isTerminal(job.state)) {
      head.earlier.push(job);
    } else {
      const group = { job, earlier: [] };
      groups.push(group);
      if (!head) {
        heads.set(key, group);
      }
    }
  }
  return groups;
}

function hasState(job: IJob, states: StateChoice): boolean {
  switch (states) {
    case 'any':
      return true;
    case 'live':
      return !isTerminal(job.state);
    case 'ended':
      return isTerminal(job.state);
    case 'failed':
      return job.state === 'failed';
  }
}

function hasWords(job: IJob, words: readonly string[]): boolean {
  const text = [job.name, job.id, job.user, job.project, ...labelsOf(job)].join('\n').toLowerCase();
  return words.every(word => text.includes(word));
}

function isCleared(job: IJob, clearedAt: number): boolean {
  return job.ended !== null && Date.parse(job.ended) <= clearedAt;
}
