/**
 * Time up to which the user has seen the ends of their jobs.
 *
 * The state of JupyterLab follows the user to other browsers but is written with a delay: a page
 * that is closed at once would report the same end again. The storage of this browser is written
 * immediately.
 */
import type { IStateDB } from '@jupyterlab/statedb';

const KEY = '@benchpool/lab:seen';

export class LastSeen {
  /**
   * @param state - State database of JupyterLab, or null.
   * @param owner - Address of the user's server: separates the users of this browser.
   */
  constructor(
    private readonly _state: IStateDB | null,
    private readonly _storage: Pick<Storage, 'getItem' | 'setItem'>,
    owner: string
  ) {
    this._key = `${KEY}:${owner}`;
  }

  /** Return the time in milliseconds, or 0 on the first page of the user. */
  async at(): Promise<number> {
    const elsewhere = Number((await this._state?.fetch(KEY)) ?? 0);
    return Math.max(elsewhere, Number(this._storage.getItem(this._key)) || 0);
  }

  /** Store the time up to which the user has seen all ends. */
  async mark(time: number): Promise<void> {
    this._storage.setItem(this._key, String(time));
    await this._state?.save(KEY, time);
  }

  private readonly _key: string;
}
