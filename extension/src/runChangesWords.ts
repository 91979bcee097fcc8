/** Texts about differences between runs. Pure. */
import type { IRunChange, IRunChanges } from './tokens';

/** Format a difference: `package numpy: 2.0.0 → 2.1.0`. */
export function changeLine({ area, name, before, after }: IRunChange): string {
  const named =
    area === 'environment' || area === 'commit' || area === name ? name : `${area} ${name}`;
  return `${named}: ${before ?? '–'} → ${after ?? '–'}`;
}

/** Return a note about runs without a recorded environment, or an empty string. */
export function unrecordedNote({ unrecorded }: Pick<IRunChanges, 'unrecorded'>): string {
  if (unrecorded.length === 0) {
    return '';
  }
  const ids = unrecorded.map(id => id.slice(0, 8)).join(' and ');
  const has = unrecorded.length === 1 ? 'has' : 'have';
  return (
    `${ids} ${has} no environment.json in the pool (runs of cells and notebooks write one when ` +
    'they start), so packages, data and seeds are not compared.'
  );
}
