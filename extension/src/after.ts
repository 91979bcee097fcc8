/** Jobs that run after other jobs: choices and texts. Pure. */
import { isTerminal } from './format';
import type { IJob } from './tokens';

/** A job or a whole array that another job can run after. */
export interface IAwaitable {
  id: string;
  name: string;
  state: string;
}

/** Return jobs that have not ended, with each array as one entry. */
export function mayRunAfter(jobs: readonly IJob[]): readonly IAwaitable[] {
  const live = jobs.filter(job => !isTerminal(job.state));
  const arrays = new Map<string, IAwaitable>();
  for (const { trial } of live) {
    if (trial?.array) {
      const { sweep, name } = trial;
      const tasks = live.filter(job => job.trial?.sweep === sweep).length;
      arrays.set(sweep, { id: sweep, name: `array ${name}`, state: `${tasks} under way` });
    }
  }
  return [...arrays.values(), ...live.filter(job => !job.trial?.array)];
}

/** Return the jobs that a job runs after, as part of its facts line, or an empty string. */
export function afterFact(job: IJob): string {
  const named = (job.awaits ?? []).map(
    it =>
      `${it.tasks ? 'array ' : ''}${it.name || it.job.slice(0, 8)}${it.outcome ? ` (${it.outcome})` : ''}`
  );
  return named.length > 0 ? ` · after ${named.join(', ')}` : '';
}
