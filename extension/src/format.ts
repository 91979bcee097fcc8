/** Texts about jobs, quota and sizes, based on `phrases.ts`. Pure. */
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

/** Actions of the job details, including actions with fields. */
export type JobAction = RowAction | FilledAction;

const ROW_ACTIONS: readonly RowAction[] = ['pause', 'resume', 'cancel'];

/** Return the row buttons: the actions that the scheduler allows, and `again` for ended jobs. */
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

/** Return the age of a timestamp. `now`: the reader's clock in milliseconds. */
export function age(time: string, now: number): string {
  // With a slow clock, past events are in the future.
  return ago(Math.max(0, (now - Date.parse(time)) / 1000));
}

/** Return the exact time in the reader's time zone, for hover texts. */
export function exact(time: string): string {
  return new Date(time).toLocaleString();
}

const INSTANT = /(\d{4}-\d{2}-\d{2}) (\d{2}:\d{2}) UTC/g;

/** Convert the times in a sentence of the service to the reader's time zone. */
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

/** Return the start text of the pool without the container text, which has its own row. */
export function startText(preview: Pick<IPreview, 'text' | 'container'>): string {
  const found = preview.container?.text;
  return found ? preview.text.replace(found, '').trim() : preview.text;
}

/** Return a start estimate as a range from now, or null if it is unknown. */
export function startRange(estimate: IEstimatedStart | null, now: number): string | null {
  if (!estimate) {
    return null;
  }
  const until = (time: string | null) => (time === null ? null : (Date.parse(time) - now) / 1000);
  return startIn(until(estimate.earliest), until(estimate.likely), until(estimate.latest));
}

/** Return the start range with its basis, or null. */
export function startSentence(estimate: IEstimatedStart | null, now: number): string | null {
  const range = startRange(estimate, now);
  return range && estimate?.basis ? `${range}, ${estimate.basis}` : range;
}

/** Format a size in powers of 1000, with at most one decimal. */
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

/** Format whole numbers as ranges: `1-2, 4, 6-8`. */
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

/** Return the time text of a row: run time, wait or total duration. */
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

/** Return the exact time from which `timing` counts. */
export function timingExact(job: IJob): string {
  const ended = isTerminal(job.state) ? (job.ended ?? job.submitted) : null;
  return exact(ended ?? (isOnGpus(job.state) && job.started ? job.started : job.submitted));
}

function seconds(from: string, to: string): number {
  return (Date.parse(to) - Date.parse(from)) / 1000;
}

/** Return the loss by a cancellation, for its confirmation. `since`: start of this attempt. */
export function lossOf(job: IJob, since: string | null, now: number): string {
  if (job.state === 'paused' || job.state === 'queued') {
    return 'Its checkpoint is kept while it waits; a cancelled job cannot be resumed.';
  }
  const ran = since ? duration((now - Date.parse(since)) / 1000) : '0 s';
  const gpus = count(job.gpus * job.workers, 'GPU');
  const attempt = job.attempt > 1 ? ` in attempt ${job.attempt}` : '';
  return `It has run for ${ran} on ${gpus}${attempt}. Unsaved progress is lost, and a cancelled job cannot be resumed.`;
}

/** Return the reclaim request of an administrator for the owner of a bench, or null. */
export function reclaimRequestText(
  held: IQuota['build']['held'][number],
  now: number
): string | null {
  const { reclaim_request: asked, gpus, server } = held;
  if (!asked) {
    return null;
  }
  const whose = server ? `server “${server}”` : 'your default server';
  const what = `${count(gpus.length, 'GPU')} of ${whose}`;
  return (
    `${asked.by} asks you to release ${what}, ${age(asked.at, now)}: ${asked.reason}. ` +
    'Save your work, then stop the server: File, Hub Control Panel.'
  );
}

/** Return the use and quota of a project: `6 GPUs held, 4 guaranteed, at most 8`. */
export function quotaLine(project: IProjectQuota): string {
  const waiting = project.waiting ? `, ${project.waiting} waiting` : '';
  const limit = project.limit === null ? '' : `, at most ${project.limit}`;
  const hours = project.gpu_hours ? `; ${project.gpu_hours.text}` : '';
  if (project.quota === null) {
    return `${count(project.allocated, 'GPU')} held, guarantee without limit${limit}${waiting}${hours}`;
  }
  return (
    `${count(project.allocated, 'GPU')} held, ${project.quota} guaranteed` +
    `${limit}${waiting}${hours}`
  );
}

/** Return the status bar text: `bench 1/2 · train 4 running, 2 waiting`. */
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

/** Return a sentence about a pause: claimant or requester, cost, and resume. */
export function pauseLine(pause: IPreemption, now: number): string {
  const asked = pause.reason ? `by ${pause.by}: ${pause.reason}` : `by ${pause.by}`;
  const why = pause.by ? asked : `for ${pause.for} (rule ${pause.rule})`;
  const on = pause.resumed_at ? `; resumed ${age(pause.resumed_at, now)}` : '';
  return `paused ${age(pause.at, now)} ${why}; progress lost: ${pause.cost}${on}`;
}

/** Return the stage of the newest pause, or an empty string if it ended some time ago. */
export function pauseText(pause: IJob['pause'], now: number): string {
  if (!pause || (pause.stage === 'back' && now - Date.parse(pause.at) > BACK_S * 1000)) {
    return '';
  }
  return pauseLeft(pause.text, pause.until ? (Date.parse(pause.until) - now) / 1000 : null);
}

/** Return the screen reader text for a state change. */
export function announcement(job: IJob): string {
  const waits = job.state === 'queued' && job.reason ? `: ${job.reason.text}` : '';
  const pause = job.pause ? `: ${job.pause.text}` : '';
  return `${job.name} is ${STATES[job.state]}${pause}${waits}`;
}

/** Maximum length of a notification in characters. JupyterLab cuts longer texts within a word. */
const TOAST_LENGTH = 140;

/** Shorten a text for a notification at a clause or word. The row shows the full text. */
export function forToast(text: string): string {
  if (text.length <= TOAST_LENGTH) {
    return text;
  }
  const room = text.slice(0, TOAST_LENGTH);
  const clause = Math.max(...['. ', '; ', ': '].map(end => room.lastIndexOf(end)));
  const end = clause > TOAST_LENGTH / 2 ? clause : room.lastIndexOf(' ');
  return `${room.slice(0, end > 0 ? end : TOAST_LENGTH - 1)}…`;
}
