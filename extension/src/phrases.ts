/**
 * The words for numbers, times, states and ends, as every screen of benchpool says them; pure.
 *
 * `benchpool_scheduler/phrases` says the same in Python; both are held to `tests/phrases.json`.
 * Times are in seconds.
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

/** How an attempt ended, by the word of the wire. */
export const ENDS: Readonly<Record<string, string>> = {
  itself: 'ended by itself',
  preempt: 'paused for others',
  pause: 'paused by hand',
  cancel: 'cancelled',
  notice: 'stopped after a notice',
  'time-limit': 'stopped at its time limit',
  'out-of-memory': 'ran out of memory',
  'could-not-start': 'could not start',
  'not-taken': 'not taken by its node; nothing ran',
  'machine-fault': 'not started for a fault of the machine; nothing ran',
  'no-room': 'not let in by a quota of the cluster; nothing ran',
  lost: 'lost with its machine; not counted as a failure'
};

const MINUTE_S = 60;
const HOUR_S = 3600;
const DAY_S = 86_400;

/** Count with its noun: `1 GPU`, `4 GPUs`. */
export function count(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? '' : 's'}`;
}

/** How much of a job is done, in whole percent; 100 is said only when all of it is. */
export function percent(fraction: number): string {
  return `${Math.max(0, Math.min(100, Math.floor(fraction * 100 + 1e-9)))} %`;
}

/** The same with what the job says beside it, and that an earlier attempt was further. */
export function done(fraction: number, fellFrom: number | null = null, text = ''): string {
  const before = fellFrom === null ? '' : `, ${percent(fellFrom)} in an earlier attempt`;
  return `${`${percent(fraction)} ${text}`.trimEnd()}${before}`;
}

/** For so long it is said that a job is back. */
export const BACK_S = 300;

/** The words of a pause with the time that is left to save; null for no such time. */
export function pauseLeft(text: string, left: number | null): string {
  if (left === null) {
    return text;
  }
  return left >= 1 ? `${text}, ${duration(left)} left` : `${text}, its time is over`;
}

/** What stands below the log of an attempt that has ended; `over`: the job has for good. */
export function logEnd(attempt: number, newest: number, over: boolean, empty: boolean): string {
  const last = over && attempt === newest;
  if (last && newest === 1) {
    return empty ? 'The job wrote nothing.' : 'The log is complete.';
  }
  const said = empty
    ? `Attempt ${attempt} wrote nothing`
    : `The log of attempt ${attempt} is complete`;
  if (last) {
    return `${said}.`;
  }
  const then = attempt < newest ? 'followed' : 'follows when the job starts again';
  return `${said}; attempt ${attempt + 1} ${then}.`;
}

/** GPUs of a whole job; `gpus` are those of one worker. */
export function gpusOfJob(gpus: number, workers: number): string {
  const all = count(gpus * workers, 'GPU');
  return workers === 1 ? all : `${all} (${workers} × ${gpus})`;
}

/**
 * A length of time in whole units, at most two of them: `42 s`, `3 h 5 min`, `2 d`. What has not
 * passed yet is not said: 119 s are `1 min`.
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

/** A length of time that somebody set or is told to keep, with nothing left out. */
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

/** A bound on a length of time: as `duration`, but rounded up. */
export function atMost(seconds: number): string {
  const step = seconds <= MINUTE_S ? 1 : seconds <= DAY_S ? MINUTE_S : HOUR_S;
  return duration(Math.ceil(seconds / step) * step);
}

/** How long something is expected to take yet; empty where that is not known or over. */
export function left(seconds: number | null): string {
  return seconds === null || seconds < 1 ? '' : `about ${atMost(seconds)} left`;
}

/** How long ago something was; negative lies ahead. */
export function ago(seconds: number): string {
  if (Math.abs(seconds) < 5) {
    return 'just now';
  }
  return seconds > 0 ? `${duration(seconds)} ago` : `in ${duration(-seconds)}`;
}

/** An estimated start, each bound from now, as a range; null where nothing is known. */
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

/** How an attempt ended; `endedBy` is the word of the wire, null where unknown. */
export function attemptEnd(endedBy: string | null, exitCode: number | null): string {
  const words = endedBy === null ? 'ended' : (ENDS[endedBy] ?? endedBy);
  return exitCode === null ? words : `${words}, exit code ${exitCode}`;
}
