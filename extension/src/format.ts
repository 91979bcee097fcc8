/**
 * How states, times, sizes and shares are put into words; pure functions of their arguments.
 */
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

/** What a user may do with a job from its row in each state; the scheduler checks it again. */
export const ACTIONS: Readonly<Record<JobState, readonly RowAction[]>> = {
  queued: ['pause', 'cancel'],
  starting: ['pause', 'cancel'],
  running: ['pause', 'cancel'],
  pausing: ['cancel'],
  paused: ['resume', 'cancel'],
  succeeded: ['again'],
  failed: ['again'],
  cancelled: ['again']
};

export type RowAction = 'pause' | 'resume' | 'cancel' | 'again';

/** The details offer one thing more. */
export type JobAction = RowAction | 'change';

const ENDED_BY: Readonly<Record<string, string>> = {
  itself: 'ended by itself',
  preempt: 'paused for others',
  pause: 'paused by its user',
  cancel: 'cancelled',
  notice: 'ended when told to stop',
  'time-limit': 'stopped at its time limit',
  'out-of-memory': 'killed: out of memory',
  'could-not-start': 'could not start',
  lost: 'lost with its machine; not counted as a failure'
};

export function isTerminal(state: JobState): boolean {
  return TERMINAL.has(state);
}

export function isOnGpus(state: JobState): boolean {
  return ON_GPUS.has(state);
}

/** Count with its noun: `1 GPU`, `4 GPUs`. */
export function count(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? '' : 's'}`;
}

/** GPUs of a whole job; `gpus` of the wire is per worker. */
export function gpusOf(job: Pick<IJob, 'gpus' | 'workers'>): string {
  const all = count(job.gpus * job.workers, 'GPU');
  return job.workers > 1 ? `${all} (${job.workers} × ${job.gpus})` : all;
}

/** A duration in at most two units: `42 s`, `12 min`, `3 h 5 min`, `2 d 4 h`. */
export function duration(seconds: number): string {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) {
    return `${s} s`;
  }
  const minutes = Math.round(s / 60);
  if (minutes < 60) {
    return `${minutes} min`;
  }
  const hours = Math.floor(minutes / 60);
  if (hours < 24) {
    return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  }
  const days = Math.floor(hours / 24);
  return hours % 24 ? `${days} d ${hours % 24} h` : `${days} d`;
}

/** How long ago, from a wire time and the reader's clock in milliseconds. */
export function age(time: string, now: number): string {
  const seconds = (now - Date.parse(time)) / 1000;
  return seconds < 5 ? 'just now' : `${duration(seconds)} ago`;
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
  const from = minutesUntil(estimate.earliest ?? estimate.likely, now);
  const to = minutesUntil(estimate.latest ?? estimate.likely, now);
  if (from === null && to === null) {
    return null;
  }
  if (to === null) {
    return from === 0 ? 'start not known yet' : `in ${spell(from!)} or later`;
  }
  if (to === 0) {
    return 'any moment';
  }
  if (!from || from === to) {
    return !from ? `within ${spell(to)}` : `in about ${spell(to)}`;
  }
  return to < 60 ? `in ${from}-${to} min` : `in ${spell(from)} to ${spell(to)}`;
}

function minutesUntil(time: string | null, now: number): number | null {
  return time === null ? null : Math.max(0, Math.round((Date.parse(time) - now) / 60_000));
}

function spell(minutes: number): string {
  return minutes < 60 ? `${minutes} min` : duration(minutes * 60);
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
  const by = attempt.ended_by ?? '';
  const words = ENDED_BY[by] ?? (by || 'ended');
  return attempt.exit_code === null ? words : `${words}, exit status ${attempt.exit_code}`;
}

/** One pause for somebody else as a sentence, with rule and cost. */
export function preemptionLine(preemption: IPreemption, now: number): string {
  const lost = preemption.lost_gpu_s
    ? `cost ${duration(preemption.lost_gpu_s)} of one GPU`
    : 'nothing lost';
  const on = preemption.resumed_at
    ? `resumed ${age(preemption.resumed_at, now)}`
    : 'resumes by itself';
  return `paused ${age(preemption.at, now)} for ${preemption.for} (rule ${preemption.rule}), ${lost}, ${on}`;
}

/** What a screen reader is told when a job changes state. */
export function announcement(job: IJob): string {
  const waits = job.state === 'queued' && job.reason ? `: ${job.reason.text}` : '';
  return `${job.name} is ${job.state}${waits}`;
}
