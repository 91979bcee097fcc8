/**
 * What a job that is there may still have otherwise: its priority and its workers. Pure; the
 * dialog draws it, `actions.ts` carries it out.
 */
import { outOfBounds } from './bounds';
import { isOnGpus } from './format';
import { count } from './phrases';
import type { IChangeRequest, IJob } from './tokens';

/** The answers of the dialog; a field that holds no number is NaN. */
export type Answers = Required<IChangeRequest>;

/** Whether the workers of a job may change now, and what there is to say about it. */
export interface IWorkersRule {
  fixed: boolean;
  note: string;
}

export function begin(job: IJob): Answers {
  return { priority: job.priority, workers: job.workers };
}

/** What the dialog says of the workers; `fixed` is the scheduler's word that they cannot change. */
export function workersRule(job: IJob, fixed: boolean): IWorkersRule {
  if (fixed) {
    const why =
      job.state === 'pausing'
        ? 'It leaves its GPUs now; change its workers when it waits.'
        : `${rigid(job.workers)}; pause it first.`;
    return { fixed, note: why };
  }
  return {
    fixed,
    note: isOnGpus(job.state)
      ? 'More come when there is room; the last ones go at once.'
      : `Processes that train together, each with ${count(job.gpus, 'GPU')}.`
  };
}

function rigid(workers: number): string {
  return workers === 1
    ? 'It runs with its one worker'
    : `It runs with all of its ${workers} workers or none`;
}

/** Faults of the answers themselves, by field; each a sentence. */
export function faults(answers: Answers): Partial<Record<keyof Answers, string>> {
  const found: Partial<Record<keyof Answers, string>> = {};
  for (const field of ['priority', 'workers'] as const) {
    const fault = outOfBounds(field, answers[field]);
    if (fault !== null) {
      found[field] = `${fault}.`;
    }
  }
  return found;
}

/** What was changed, as a sentence. */
export function outcome(job: IJob, { priority, workers }: IChangeRequest): string {
  const parts = [
    priority === undefined ? '' : `has priority ${priority} now`,
    workers === undefined ? '' : `is to have ${count(workers, 'worker')}`
  ].filter(part => part);
  return `“${job.name}” ${parts.join(' and ')}.`;
}
