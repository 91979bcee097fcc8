/** Bounds of the dialog fields, as in the OpenAPI document. */

export const BOUNDS = {
  gpus: { name: 'GPUs', least: 1, most: 1024 },
  workers: { name: 'Workers', least: 1, most: 4096 },
  priority: { name: 'Priority', least: 0, most: 1000 },
  retries: { name: 'Retries', least: 0, most: 10 }
} as const;

/** Maximum time limit, in seconds. */
export const MAX_TIME_S = 366 * 86_400;

/** Maximum number of tags of a job, and maximum length of a tag in characters. */
export const TAGS = { most: 16, longest: 63 } as const;

export type Bounded = keyof typeof BOUNDS;

/** Return the fault of a value as the start of a sentence, or null. */
export function outOfBounds(field: Bounded, n: number): string | null {
  const { name, least, most } = BOUNDS[field];
  const isFine = Number.isInteger(n) && n >= least && n <= most;
  return isFine ? null : `${name}: a whole number from ${least} to ${most}`;
}
