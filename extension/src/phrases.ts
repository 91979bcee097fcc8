/**
 * Texts for numbers, times, states and ends, shared by all benchpool screens. Pure.
 *
 * `benchpool_scheduler/phrases` has the same texts in Python. Both pass `tests/phrases.json`. Times
 * are in seconds.
 */
import type { JobState } from './tokens';

export const STATES: Readonly<Record<JobState, string>> = {
  queued: 'queued',
  starting: 'starting',
  running: 'running',
  pausing: 'pausing',
  paused: 'paused',
  succeeded: 'succeeded',
  failed: 'failed',
  cancelled: 'cancelled'
};

/** Text for the end of an attempt, by its API value. */
export const ENDS: Readonly<Record<string, string>> = {
  itself: 'ended by itself',
  preempt: 'paused for others',
  pause: 'paused by hand',
  cancel: 'cancelled',
  notice: 'stopped after a notice',
  'time-limit': 'stopped at its time limit',
  'out-of-memory': 'ran out of memory',
  'could-not-start': 'could not start',
  'not-taken': 'not accepted by its node; nothing ran',
  'machine-fault': 'not started because of a machine fault; nothing ran',
  'no-room': 'rejected by a quota of the cluster; nothing ran',
  lost: 'lost with its machine; not counted as a failure'
};

const MINUTE_S = 60;
const HOUR_S = 3600;
const DAY_S = 86_400;

/** Format a count with its noun: `1 GPU`, `4 GPUs`. */
export function count(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? '' : 's'}`;
}

/** Format a fraction in whole percent, rounded down: 100 % only if all of it is done. */
export function percent(fraction: number): string {
  return `${Math.max(0, Math.min(100, Math.floor(fraction * 100 + 1e-9)))} %`;
}

/** Format the progress with the job's own text and a higher progress of an earlier attempt. */
export function done(fraction: number, fellFrom: number | null = null, text = ''): string {
  const before = fellFrom === null ? '' : `, ${percent(fellFrom)} in an earlier attempt`;
  return `${`${percent(fraction)} ${text}`.trimEnd()}${before}`;
}

/** Period during which a job is shown as back, in seconds. */
export const BACK_S = 300;

/** Return the text of a pause with the time left to save, or without it for null. */
export function pauseLeft(text: string, left: number | null): string {
  if (left === null) {
    return text;
  }
  return left >= 1 ? `${text}, ${duration(left)} left` : `${text}, its time is over`;
}

/** Return the text below the log of an ended attempt. `over`: the job has ended. */
export function logEnd(attempt: number, newest: number, over: boolean, empty: boolean): string {
  const last = over && attempt === newest;
  if (last && newest === 1) {
    return empty ? 'The job wrote nothing.' : 'The log is complete.';
  }
  const state = empty
    ? `Attempt ${attempt} wrote nothing`
    : `The log of attempt ${attempt} is complete`;
  if (last) {
    return `${state}.`;
  }
  const then = attempt < newest ? 'followed' : 'follows when the job starts again';
  return `${state}; attempt ${attempt + 1} ${then}.`;
}

/** Format the GPUs of a job. `gpus`: GPUs per worker. */
export function gpusOfJob(gpus: number, workers: number): string {
  const all = count(gpus * workers, 'GPU');
  return workers === 1 ? all : `${all} (${workers} × ${gpus})`;
}

/**
 * Format a duration in at most two whole units: `42 s`, `3 h 5 min`, `2 d`. It is rounded down: 119
 * s is `1 min`.
 */
export function duration(seconds: number): string {
  const whole = Math.max(0, Math.trunc(seconds));
  if (whole < MINUTE_S) {
    return `${whole} s`;
  }
  if (whole < HOUR_S) {
    return `${Math.trunc(whole / MINUTE_S)} min`;
  }
  return whole < DAY_S
    ? twoUnits(whole, [HOUR_S, 'h'], [MINUTE_S, 'min'])
    : twoUnits(whole, [DAY_S, 'd'], [HOUR_S, 'h']);
}

type Unit = readonly [seconds: number, name: string];

function twoUnits(seconds: number, [large, of]: Unit, [small, rest]: Unit): string {
  const less = Math.trunc((seconds % large) / small);
  const more = `${Math.trunc(seconds / large)} ${of}`;
  return less ? `${more} ${less} ${rest}` : more;
}

/** Format a configured duration exactly, with all units. */
export function exactly(seconds: number): string {
  let whole = Math.trunc(seconds);
  const parts: string[] = [];
  for (const [size, unit] of [
    [DAY_S, 'd'],
    [HOUR_S, 'h'],
    [MINUTE_S, 'min']
  ] as const) {
    const number = Math.trunc(whole / size);
    whole -= number * size;
    if (number) {
      parts.push(`${number} ${unit}`);
    }
  }
  const rest = whole + Math.round((seconds % 1) * 1000) / 1000;
  return [...parts, ...(rest || !parts.length ? [`${rest} s`] : [])].join(' ');
}

/** Format an upper bound of a duration: like `duration`, but rounded up. */
export function atMost(seconds: number): string {
  const step = seconds <= MINUTE_S ? 1 : seconds <= DAY_S ? MINUTE_S : HOUR_S;
  return duration(Math.ceil(seconds / step) * step);
}

/** Return the expected remaining time, or an empty string if it is unknown or over. */
export function left(seconds: number | null): string {
  return seconds === null || seconds < 1 ? '' : `about ${atMost(seconds)} left`;
}

/** Format an age. Negative seconds are in the future. */
export function ago(seconds: number): string {
  if (Math.abs(seconds) < 5) {
    return 'just now';
  }
  return seconds > 0 ? `${duration(seconds)} ago` : `in ${duration(-seconds)}`;
}

/** Return an estimated start as a range, or null if it is unknown. Bounds are seconds from now. */
export function startIn(
  earliest: number | null,
  likely: number | null,
  latest: number | null
): string | null {
  if (latest !== null) {
    return range(earliest, latest);
  }
  if (likely !== null) {
    return `in about ${duration(likely)}`;
  }
  return earliest === null || earliest < 1 ? null : `in ${duration(earliest)} or later`;
}

function range(earliest: number | null, latest: number): string {
  if (latest < 5) {
    return 'any moment';
  }
  const last = atMost(latest);
  if (earliest === null || earliest < 1) {
    return `within ${last}`;
  }
  const first = duration(earliest);
  if (first === last) {
    return `in about ${last}`;
  }
  const [number, ...unit] = first.split(' ');
  const isOneUnit = unit.length === 1 && last.split(' ').slice(1).join(' ') === unit[0];
  return isOneUnit ? `in ${number}–${last}` : `in ${first} to ${last}`;
}

/** Return the text for the end of an attempt. `endedBy`: its API value, null if unknown. */
export function attemptEnd(endedBy: string | null, exitCode: number | null): string {
  const words = endedBy === null ? 'ended' : (ENDS[endedBy] ?? endedBy);
  return exitCode === null ? words : `${words}, exit code ${exitCode}`;
}
