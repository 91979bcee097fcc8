/**
 * Sweep as typed in the dialog: names, values and stop conditions. Pure.
 *
 * The notebook server interprets the values. This module only checks numbers and names.
 */
import type { SweepMethod } from './generated/page';
import { given, type Typed } from './parameters';
import type { ISendRequest } from './tokens';

/** Values of one name as typed. */
export interface ISweptName {
  name: string;
  values: string;
}

export interface ISweepDraft {
  names: readonly ISweptName[];
  /** Parameters whose own field holds several values because the user chose it. */
  several: readonly string[];
  /** Task numbers of an array in the format of Slurm. An array has no other values. */
  array: string;
  /** Method, or an empty string for the default of the values. */
  method: '' | SweepMethod;
  metric: string;
  /** Direction, or an empty string to infer it from the metric name. */
  goal: '' | 'minimize' | 'maximize';
  trials: string;
  atOnce: string;
  stopEarly: string;
  patience: string;
  goodEnough: string;
  gpuHours: string;
  trialHours: string;
  trialSteps: string;
}

export const NO_SWEEP: ISweepDraft = {
  names: [],
  several: [],
  array: '',
  method: '',
  metric: '',
  goal: '',
  trials: '',
  atOnce: '',
  stopEarly: '',
  patience: '',
  goodEnough: '',
  gpuHours: '',
  trialHours: '',
  trialSteps: ''
};

/** Methods of the contract, with their labels. */
export const METHODS: Readonly<Record<SweepMethod, string>> = {
  grid: 'grid: each combination once',
  random: 'random draws',
  tpe: 'TPE: near the best so far'
};

/** Optional numbers with their labels. */
export const SWEEP_NUMBERS = {
  trials: { name: 'Trials', kind: 'whole' },
  atOnce: { name: 'At once', kind: 'whole' },
  patience: { name: 'Patience', kind: 'whole' },
  goodEnough: { name: 'Good enough', kind: 'any' },
  gpuHours: { name: 'GPU-hours', kind: 'positive' },
  trialHours: { name: 'A trial takes', kind: 'positive' },
  trialSteps: { name: 'Its steps', kind: 'whole' }
} as const;

const KINDS = {
  whole: { words: 'a whole number above 0', fits: (n: number) => Number.isInteger(n) && n > 0 },
  positive: { words: 'a number above 0', fits: (n: number) => n > 0 },
  any: { words: 'a number', fits: (n: number) => Number.isFinite(n) }
} as const;

type SweepNumber = keyof typeof SWEEP_NUMBERS;

/** Answers with their names in requests and refusals. */
export const SWEEP_FIELDS = {
  array: 'array',
  method: 'method',
  metric: 'metric',
  goal: 'goal',
  trials: 'trials',
  atOnce: 'at_once',
  stopEarly: 'stop_early',
  patience: 'patience',
  goodEnough: 'good_enough',
  gpuHours: 'gpu_hours',
  trialHours: 'trial_hours',
  trialSteps: 'trial_steps'
} as const;

export type SweepField = keyof typeof SWEEP_FIELDS;

/** Example of several values, for an empty field. */
export const SEVERAL_FORMS = '0.1, 0.01 or 1e-5 … 1e-3 log or 0..4';

const NAME = /^[A-Za-z_]\w{0,99}$/;

/** Return the lines that are not empty. */
function filled(draft: ISweepDraft): readonly ISweptName[] {
  return draft.names.filter(one => one.name.trim() !== '' || one.values.trim() !== '');
}

/** Return whether an answer is given. Without values and tasks it has no effect. */
export function isSwept(draft: ISweepDraft): boolean {
  const fields = Object.keys(SWEEP_FIELDS) as SweepField[];
  return (
    filled(draft).length + draft.several.length > 0 ||
    fields.some(field => draft[field].trim() !== '')
  );
}

/** Return whether the draft is an array: the same job for each task number. */
export function isArray(draft: ISweepDraft): boolean {
  return draft.array.trim() !== '';
}

/** Return the faults of the answers by field, one sentence each. */
export function faultsOfSweep(draft: ISweepDraft): Partial<Record<SweepField | 'names', string>> {
  const fields: SweepNumber[] = isArray(draft)
    ? ['trialHours']
    : (Object.keys(SWEEP_NUMBERS) as SweepNumber[]);
  const numbers = fields.flatMap((field): [SweepField, string][] => {
    const { name, kind } = SWEEP_NUMBERS[field];
    const text = draft[field].trim();
    return text === '' || KINDS[kind].fits(Number(text))
      ? []
      : [[field, `${name}: ${KINDS[kind].words}, or empty.`]];
  });
  const names = faultOfNames(draft);
  return { ...(names === null ? {} : { names }), ...Object.fromEntries(numbers) };
}

function faultOfNames(draft: ISweepDraft): string | null {
  const names = filled(draft);
  if (isArray(draft)) {
    return names.length + draft.several.length > 0
      ? 'Array: its tasks differ only in their number. Remove the values or the array.'
      : null;
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
    if (draft.several.includes(name.trim())) {
      return `Sweep: ${name.trim()} has values in its own field. Keep one of them.`;
    }
    if (seen.has(name.trim())) {
      return `Sweep: ${name.trim()} is listed twice. Put its values on one line.`;
    }
    seen.add(name.trim());
  }
  return null;
}

/** Return the typed parameters with one value: without those with several values by choice. */
export function singleOf(draft: ISweepDraft, typed: Typed): Record<string, string> {
  const single = Object.entries(given(typed)).filter(([name]) => !draft.several.includes(name));
  return Object.fromEntries(single);
}

/**
 * Return the request fields, or an empty object without answers. `typed`: texts of the parameter
 * fields.
 */
export function sweepOf(draft: ISweepDraft, typed: Typed = {}): Pick<ISendRequest, 'sweep'> {
  if (!isSwept(draft)) {
    return {};
  }
  const number = (text: string): number | null => (text.trim() === '' ? null : Number(text));
  if (isArray(draft)) {
    const hours = number(draft.trialHours);
    return {
      sweep: { ...NO_LIMITS, values: {}, array: draft.array.trim(), trial_hours: hours }
    };
  }
  const pairs = filled(draft).map(one => [one.name.trim(), one.values.trim()] as const);
  const own = Object.entries(given(typed)).filter(([name]) => draft.several.includes(name));
  return {
    sweep: {
      array: null,
      values: Object.fromEntries([...pairs, ...own]),
      method: draft.method || null,
      metric: draft.metric.trim() || null,
      goal: (draft.metric.trim() && draft.goal) || null,
      trials: number(draft.trials),
      at_once: number(draft.atOnce) ?? NO_LIMITS.at_once,
      stop_early: draft.stopEarly.trim() || null,
      patience: number(draft.patience),
      good_enough: number(draft.goodEnough),
      gpu_hours: number(draft.gpuHours),
      trial_hours: number(draft.trialHours),
      trial_steps: number(draft.trialSteps)
    }
  };
}

const NO_LIMITS = {
  method: null,
  metric: null,
  goal: null,
  trials: null,
  at_once: 4,
  stop_early: null,
  patience: null,
  good_enough: null,
  gpu_hours: null,
  trial_steps: null
} as const;
