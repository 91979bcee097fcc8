/** Labels of a job: shown in its row and available as filters in the panel. */
import type { IJob } from './tokens';

export function labelsOf(job: IJob): readonly string[] {
  return [...(job.over_quota ? ['over quota'] : []), ...job.tags];
}

/** Return all labels of jobs in alphabetical order, without duplicates. */
export function labelsIn(jobs: readonly IJob[]): string[] {
  return [...new Set(jobs.flatMap(labelsOf))].sort();
}

/** Return the jobs with a label, or all jobs for an empty label. */
export function labelled(jobs: readonly IJob[], label: string): readonly IJob[] {
  return label === '' ? jobs : jobs.filter(job => labelsOf(job).includes(label));
}
