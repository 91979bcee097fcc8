/**
 * What the front end says of jobs, quota and sizes, in the words of `phrases.ts`; pure.
 */
import { ago, attemptEnd, BACK_S, count, duration, pauseLeft, startIn, STATES } from './phrases';
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

const INSTANT = /(\d{4}-\d{2}-\d{2}) (\d{2}:\d{2}) UTC/g;

/** A sentence of the service, the instants in it as the reader's clocks show them. */
export function inReadersZone(text: string): string {
  return text.replace(INSTANT, (whole, day: string, time: string) => {
    const at = new Date(`${day}T${time}:00Z`);
    return Number.isNaN(at.getTime())
      ? whole
      : at.toLocaleString(undefined, {
          year: 'numeric',
          month: 'short',
          day: 'numeric',
          hour: '2-digit',
          minute: '2-digit',
          timeZoneName: 'short'
        });
  });
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

/** The one thing that is said of a start: its range, and what that rests on; null for nothing. */
export function startSentence(estimate: IEstimatedStart | null, now: number): string | null {
  const range = startRange(estimate, now);
  return range && estimate?.basis ? `${range}, ${estimate.basis}` : range;
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

/** The exact time that `timing` counts from. */
export function timingExact(job: IJob): string {
  const ended = isTerminal(job.state) ? (job.ended ?? job.submitted) : null;
  return exact(ended ?? (isOnGpus(job.state) && job.started ? job.started : job.submitted));
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

/** That an administrator asks for a bench, as its owner reads it; null while nobody does. */
export function askedBack(held: IQuota['build']['held'][number], now: number): string | null {
  const { asked_back: asked, gpus, server } = held;
  if (!asked) {
    return null;
  }
  const whose = server ? `server “${server}”` : 'your default server';
  const what = `${count(gpus.length, 'GPU')} of ${whose}`;
  return (
    `${asked.by} asks you to give back ${what}, ${age(asked.at, now)}: ${asked.reason}. ` +
    'Save your work, then stop the server: File, Hub Control Panel.'
  );
}

/** Use of a project beside its guarantee: `6 GPUs held, 4 guaranteed, at most 8`. */
export function quotaLine(project: IProjectQuota): string {
  const waiting = project.waiting ? `, ${project.waiting} waiting` : '';
  const limit = project.limit === null ? '' : `, at most ${project.limit}`;
  const hours = project.gpu_hours ? `; ${project.gpu_hours.text}` : '';
  if (project.quota === null) {
    return `${count(project.allocated, 'GPU')} held, no bound on the guarantee${limit}${waiting}${hours}`;
  }
  return (
    `${count(project.allocated, 'GPU')} held, ${project.quota} guaranteed` +
    `${limit}${waiting}${hours}`
  );
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

/** One pause as a sentence: for whom, or who asked; what it cost, and that the job went on. */
export function pauseLine(pause: IPreemption, now: number): string {
  const asked = pause.reason ? `by ${pause.by}: ${pause.reason}` : `by ${pause.by}`;
  const why = pause.by ? asked : `for ${pause.for} (rule ${pause.rule})`;
  const on = pause.resumed_at ? `; resumed ${age(pause.resumed_at, now)}` : '';
  return `paused ${age(pause.at, now)} ${why}; progress lost: ${pause.cost}${on}`;
}

/** Where the newest pause stands; empty where it is over, or the job is back for a while. */
export function pauseText(pause: IJob['pause'], now: number): string {
  if (!pause || (pause.stage === 'back' && now - Date.parse(pause.at) > BACK_S * 1000)) {
    return '';
  }
  return pauseLeft(pause.text, pause.until ? (Date.parse(pause.until) - now) / 1000 : null);
}

/** What a screen reader is told when a job changes state. */
export function announcement(job: IJob): string {
  const waits = job.state === 'queued' && job.reason ? `: ${job.reason.text}` : '';
  const pause = job.pause ? `: ${job.pause.text}` : '';
  return `${job.name} is ${STATES[job.state]}${pause}${waits}`;
}

/** JupyterLab cuts a notification after so many characters, in the middle of a word. */
const TOAST_LENGTH = 140;

/** What a notification says: what is too long ends with a clause, and the row says all. */
export function forToast(text: string): string {
  if (text.length <= TOAST_LENGTH) {
    return text;
  }
  const room = text.slice(0, TOAST_LENGTH);
  const clause = Math.max(...['. ', '; ', ': '].map(end => room.lastIndexOf(end)));
  const end = clause > TOAST_LENGTH / 2 ? clause : room.lastIndexOf(' ');
  return `${room.slice(0, end > 0 ? end : TOAST_LENGTH - 1)}…`;
}
