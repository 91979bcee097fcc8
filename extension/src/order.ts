/** Order of rows on the screen. Rows do not move while the pointer is over the list. */

export interface IOrder {
  /** IDs to show, in order. */
  shown: readonly string[];
  /** Number of new rows that are held back until the pointer leaves. */
  held: number;
}

/**
 * Return the order to show. While `hovered`, rows keep their place, removed rows are dropped, and
 * new rows are held back. Otherwise it is the wanted order.
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
