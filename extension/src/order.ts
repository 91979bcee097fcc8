/**
 * The order of rows on the screen: while a pointer is over the list, nothing moves under it.
 */

export interface IOrder {
  /** Ids to show, in order. */
  shown: readonly string[];
  /** How many new rows wait until the pointer has left. */
  held: number;
}

/**
 * Settle what to show. While `hovered`, rows keep their place, removed rows leave, and new rows
 * are held back; otherwise the wanted order is taken over.
 */
export function settle(
  shown: readonly string[],
  wanted: readonly string[],
  hovered: boolean
): IOrder {
  if (!hovered || shown.length === 0) {
    return { shown: wanted, held: 0 };
  }
  const present = new Set(wanted);
  const before = new Set(shown);
  return {
    shown: shown.filter(id => present.has(id)),
    held: wanted.filter(id => !before.has(id)).length
  };
}
