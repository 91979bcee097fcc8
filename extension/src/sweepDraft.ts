/**
 * Sweep as typed in the dialog: names, values and stop conditions. Pure.
 *
 * The notebook server interprets the values. This module only checks numbers and names.
 */
import type { ISendRequest } from './tokens';

/** Values of one name as typed. */
export interface ISweptName {
  name: string;
  values: string;
}

export interface ISweepDraft {
  names: readonly ISweptName[];
  /** Task numbers of an array in the format of Slurm. An array has no other values. */
  array: string;
  metric: string;
  /** Direction, or an empty string to infer it from the metric name. */
  goal: '' | 'minimize' | 'maximize';
  trials: string;
  atOnce: string;
  stopEarly: string;
  gpuHours: string;
  trialHours: string;
}

export const NO_SWEEP: ISweepDraft = {
  names: [],
  array: '',
  metric: '',
  goal: '',
  trials: '',
  atOnce: '',
  stopEarly: '',
  gpuHours: '',
  trialHours: ''
};

/** Optional numbers with their labels. */
export const SWEEP_NUMBERS = {
  trials: { name: 'Trials', whole: true },
  atOnce: { name: 'At once', whole: true },
  gpuHours: { name: 'GPU-hours', whole: false },
  trialHours: { name: 'A trial takes', whole: false }
} as const;

const NAME = /^[A-Za-z_]\w{0,99}$/;

/** Return the lines that are not empty. */
function filled(draft: ISweepDraft): readonly ISweptName[] {
  return draft.names.filter(one => one.name.trim() !== '' || one.values.trim() !== '');
}

/** Return whether the draft is a sweep or an array. */
export function isSwept(draft: ISweepDraft): boolean {
  return filled(draft).length > 0 || isArray(draft);
}

/** Return whether the draft is an array: the same job for each task number. */
export function isArray(draft: ISweepDraft): boolean {
  return draft.array.trim() !== '';
}

/** Return the fault of the answers as a sentence, or null. */
export function faultOfSweep(draft: ISweepDraft): string | null {
  const names = filled(draft);
  if (isArray(draft)) {
    return names.length > 0
      ? 'Array: its tasks differ only in their number. Remove the values or the array.'
      : faultOfNumbers(draft, ['trialHours']);
  }
  if (names.length === 0) {
    return null;
  }
  const seen = new Set<string>();
  for (const { name, values } of names) {
    if (!NAME.test(name.trim())) {
      return name.trim() === ''
        ? `Sweep: enter a name for the values ${values.trim()}.`
        : `Sweep: “${name.trim()}” is not a valid name.`;
    }
    if (values.trim() === '') {
      return `Sweep: ${name.trim()} has no values yet, for example 0.1, 0.01.`;
    }
    if (seen.has(name.trim())) {
      return `Sweep: ${name.trim()} is listed twice. Put its values on one line.`;
    }
    seen.add(name.trim());
  }
  return faultOfNumbers(draft);
}

function faultOfNumbers(
  draft: ISweepDraft,
  fields: readonly (keyof typeof SWEEP_NUMBERS)[] = ['trials', 'atOnce', 'gpuHours', 'trialHours']
): string | null {
  for (const field of fields) {
    const { name, whole } = SWEEP_NUMBERS[field];
    const value = draft[field].trim() === '' ? 1 : Number(draft[field]);
    if (!(value > 0) || (whole && !Number.isInteger(value))) {
      return `${name}: a${whole ? ' whole' : ''} number above 0, or empty.`;
    }
  }
  return null;
}

/** Return the request fields, or an empty object without a sweep. */
export function sweepOf(draft: ISweepDraft): Pick<ISendRequest, 'sweep'> {
  if (!isSwept(draft)) {
    return {};
  }
  const number = (text: string): number | null => (text.trim() === '' ? null : Number(text));
  if (isArray(draft)) {
    const open = { metric: null, goal: null, trials: null, stop_early: null, gpu_hours: null };
    const hours = number(draft.trialHours);
    return {
      sweep: { ...open, values: {}, array: draft.array.trim(), at_once: 4, trial_hours: hours }
    };
  }
  const pairs = filled(draft).map(one => [one.name.trim(), one.values.trim()] as const);
  return {
    sweep: {
      array: null,
      values: Object.fromEntries(pairs),
      metric: draft.metric.trim() || null,
      goal: draft.goal || null,
      trials: number(draft.trials),
      at_once: number(draft.atOnce) ?? 4,
      stop_early: draft.stopEarly.trim() || null,
      gpu_hours: number(draft.gpuHours),
      trial_hours: number(draft.trialHours)
    }
  };
}
