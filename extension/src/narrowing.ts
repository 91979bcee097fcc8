/**
 * What the panel shows of the jobs: those that are searched for, in some states, and not cleared
 * away; of what was sent several times the newest, with the earlier ones folded below it.
 */
import { isTerminal } from './format';
import { labelsOf } from './labels';
import type { IJob } from './tokens';

/** The groups of states that the list can be narrowed to, with their words. */
export const STATE_CHOICES = {
  any: 'all states',
  live: 'not ended',
  ended: 'ended',
  failed: 'failed'
} as const;

export type StateChoice = keyof typeof STATE_CHOICES;

/** `clearedAt`: what ended until then is out of the list; 0 for nothing. Milliseconds. */
export interface INarrowing {
  search: string;
  states: StateChoice;
  clearedAt: number;
}

export const EVERYTHING: INarrowing = { search: '', states: 'any', clearedAt: 0 };

/** The jobs in which all words of the search stand, in these states, and not cleared away. */
export function narrowed(jobs: readonly IJob[], by: INarrowing): readonly IJob[] {
  const words = by.search
    .toLowerCase()
    .split(/\s+/)
    .filter(word => word);
  return jobs.filter(
    job => hasState(job, by.states) && !isCleared(job, by.clearedAt) && hasWords(job, words)
  );
}

/** How many jobs are out of the list because they were cleared away. */
export function countCleared(jobs: readonly IJob[], clearedAt: number): number {
  return jobs.filter(job => isCleared(job, clearedAt)).length;
}

/** A job of the list; `earlier` are ended ones of the same name and user that were sent before. */
export interface IGroup {
  job: IJob;
  earlier: readonly IJob[];
}

/** Fold what was sent several times; jobs come newest first, and what has not ended stands alone. */
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
