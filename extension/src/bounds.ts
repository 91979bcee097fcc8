/**
 * Between which numbers the answers of the dialogs may lie; the OpenAPI document has the same.
 */

export const BOUNDS = {
  gpus: { name: 'GPUs', least: 1, most: 1024 },
  workers: { name: 'Workers', least: 1, most: 4096 },
  priority: { name: 'Priority', least: 0, most: 1000 },
  retries: { name: 'Retries', least: 0, most: 10 }
} as const;

/** The longest time limit, in seconds. */
export const MAX_TIME_S = 366 * 86_400;

/** Of a job: how many, and of how many characters each. */
export const TAGS = { most: 16, longest: 63 } as const;

export type Bounded = keyof typeof BOUNDS;

/** What is wrong with an answer, as the beginning of a sentence; null where nothing is. */
export function outOfBounds(field: Bounded, n: number): string | null {
  const { name, least, most } = BOUNDS[field];
  const isFine = Number.isInteger(n) && n >= least && n <= most;
  return isFine ? null : `${name}: a whole number from ${least} to ${most}`;
}
