/**
 * The short words that a job carries, as its row shows them and as the panel can be narrowed to.
 */
import type { IJob } from './tokens';

export function labelsOf(job: IJob): readonly string[] {
  return [...(job.over_quota ? ['over quota'] : []), ...job.tags];
}

/** All labels of some jobs, each once, in alphabetical order. */
export function labelsIn(jobs: readonly IJob[]): string[] {
  return [...new Set(jobs.flatMap(labelsOf))].sort();
}

/** The jobs that carry a label; all for none. */
export function labelled(jobs: readonly IJob[], label: string): readonly IJob[] {
  return label === '' ? jobs : jobs.filter(job => labelsOf(job).includes(label));
}
