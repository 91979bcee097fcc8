/**
 * What the front end says of jobs, quota and sizes, in the words of `phrases.ts`; pure.
 */
import { ago, attemptEnd, count, duration, gpuTime, startIn, STATES } from './phrases';
import type { FilledAction } from './generated/actions';
import type {
  IAttempt,
  IEstimatedStart,
  IJob,
  IPreemption,
  IPreview,
  IProjectQuota,
  IQuota,
  JobState
} from './tokens';

const TERMINAL: ReadonlySet<JobState> = new Set(['succeeded', 'failed', 'cancelled']);
const ON_GPUS: ReadonlySet<JobState> = new Set(['starting', 'running', 'pausing']);

export type RowAction = 'pause' | 'resume' | 'cancel' | 'again';

/** The details offer those too that are filled in before. */
export type JobAction = RowAction | FilledAction;

const ROW_ACTIONS: readonly RowAction[] = ['pause', 'resume', 'cancel'];

/** The buttons of a job's row: what the scheduler says may be done; who has ended can go again. */
export function rowActions(job: IJob): readonly RowAction[] {
  return isTerminal(job.state)
    ? ['again']
    : ROW_ACTIONS.filter(action => job.actions.includes(action));
}

export function isTerminal(state: JobState): boolean {
  return TERMINAL.has(state);
}

export function isOnGpus(state: JobState): boolean {
  return ON_GPUS.has(state);
}

/** How long ago, from a wire time and the reader's clock in milliseconds. */
export function age(time: string, now: number): string {
  // A clock that runs behind puts what has happened into the future.
  return ago(Math.max(0, (now - Date.parse(time)) / 1000));
}

/** The exact time in the reader's zone, for hover. */
export function exact(time: string): string {
  return new Date(time).toLocaleString();
}

/** What the pool says of the start alone: what a job finds on a cluster has a row of its own. */
export function startText(preview: Pick<IPreview, 'text' | 'container'>): string {
  const found = preview.container?.text;
  return found ? preview.text.replace(found, '').trim() : preview.text;
}

/** A start estimate as a range from now, or null where nothing is known. */
export function startRange(estimate: IEstimatedStart | null, now: number): string | null {
  if (!estimate) {
    return null;
  }
  const until = (time: string | null) => (time === null ? null : (Date.parse(time) - now) / 1000);
  return startIn(until(estimate.earliest), until(estimate.likely), until(estimate.latest));
}

/** A size with one decimal from kilobytes up, in powers of 1000. */
export function size(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toFixed(value < 9.95 ? 1 : 0)} ${units[unit]}`;
}

/** Progress as a whole percentage that says 100 only when it is done. */
export function percent(fraction: number): string {
  const bounded = Math.min(1, Math.max(0, fraction));
  return `${bounded === 1 ? 100 : Math.min(99, Math.floor(bounded * 100))} %`;
}

/** Whole numbers as ranges: `1-2, 4, 6-8`. */
export function ranges(numbers: readonly number[]): string {
  const sorted = [...new Set(numbers)].sort((a, b) => a - b);
  const parts: string[] = [];
  for (let i = 0; i < sorted.length;) {
    let j = i;
    while (sorted[j + 1] === sorted[j]! + 1) {
      j += 1;
    }
    parts.push(i === j ? `${sorted[i]}` : `${sorted[i]}-${sorted[j]}`);
    i = j + 1;
  }
  return parts.join(', ');
}

/** The time line of a row: how long it runs, waits or took. */
export function timing(job: IJob, now: number): string {
  if (isTerminal(job.state)) {
    const ended = job.ended ?? job.submitted;
    const took = job.started ? `${duration(seconds(job.started, ended))}, ` : '';
    return `${took}ended ${age(ended, now)}`;
  }
  if (isOnGpus(job.state) && job.started) {
    return job.attempt > 1
      ? `first started ${age(job.started, now)}`
      : `for ${duration((now - Date.parse(job.started)) / 1000)}`;
  }
  return `sent ${age(job.submitted, now)}`;
}

function seconds(from: string, to: string): number {
  return (Date.parse(to) - Date.parse(from)) / 1000;
}

/** What a cancellation would lose, as its confirmation; `since` is the start of this attempt. */
export function lossOf(job: IJob, since: string | null, now: number): string {
  if (job.state === 'paused' || job.state === 'queued') {
    return 'Its checkpoint is kept while it waits; a cancelled job cannot be resumed.';
  }
  const ran = since ? duration((now - Date.parse(since)) / 1000) : '0 s';
  const gpus = count(job.gpus * job.workers, 'GPU');
  const attempt = job.attempt > 1 ? ` in attempt ${job.attempt}` : '';
  return `It has run for ${ran} on ${gpus}${attempt}. What it has not saved is lost, and a cancelled job cannot be resumed.`;
}

/** Use of a project against its guarantee: `2 of 4 guaranteed GPUs in use`. */
export function quotaLine(project: IProjectQuota): string {
  const waiting = project.waiting ? `, ${project.waiting} waiting` : '';
  const limit = project.limit === null ? '' : `, at most ${project.limit}`;
  if (project.quota === null) {
    return `${count(project.allocated, 'GPU')} in use, no bound on the guarantee${limit}${waiting}`;
  }
  return `${project.allocated} of ${project.quota} guaranteed in use${limit}${waiting}`;
}

/** The status bar: `bench 1/2 · train 4 running, 2 waiting`. */
export function statusLine(quota: IQuota | null, jobs: readonly IJob[]): string {
  const held = quota?.build.held.reduce((sum, server) => sum + server.gpus.length, 0) ?? 0;
  const bench = quota ? `bench ${held}/${quota.build.quota} · ` : '';
  const mine = quota ? jobs.filter(job => job.user === quota.user) : jobs;
  const running = mine.filter(job => isOnGpus(job.state)).length;
  const waiting = mine.filter(job => job.state === 'queued').length;
  const paused = mine.filter(job => job.state === 'paused').length;
  const rest = paused ? `, ${paused} paused` : '';
  return `${bench}train ${running} running, ${waiting} waiting${rest}`;
}

export function endedBy(attempt: IAttempt): string {
  if (attempt.ended === null) {
    return attempt.started === null ? 'starting' : 'running';
  }
  return attemptEnd(attempt.ended_by, attempt.exit_code);
}

/** One pause for somebody else as a sentence, with rule and cost. */
export function preemptionLine(preemption: IPreemption, now: number): string {
  const lost = preemption.lost_gpu_s ? `cost ${gpuTime(preemption.lost_gpu_s)}` : 'nothing lost';
  const on = preemption.resumed_at
    ? `resumed ${age(preemption.resumed_at, now)}`
    : 'resumes by itself';
  return `paused ${age(preemption.at, now)} for ${preemption.for} (rule ${preemption.rule}), ${lost}, ${on}`;
}

/** What a screen reader is told when a job changes state. */
export function announcement(job: IJob): string {
  const waits = job.state === 'queued' && job.reason ? `: ${job.reason.text}` : '';
  return `${job.name} is ${STATES[job.state]}${waits}`;
}
