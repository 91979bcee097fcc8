/**
 * Until when this user has seen what became of their jobs.
 *
 * JupyterLab's state goes with the user to other browsers, but is written a moment late: a page
 * that is closed at once would tell the same end again. This browser's own storage is written at
 * once.
 */
import type { IStateDB } from '@jupyterlab/statedb';

const KEY = '@benchpool/lab:seen';

export class LastSeen {
  /**
   * @param state - JupyterLab's; null where it has none.
   * @param owner - Address of their server: tells one user's pages from another's here.
   */
  constructor(
    private readonly _state: IStateDB | null,
    private readonly _storage: Pick<Storage, 'getItem' | 'setItem'>,
    owner: string
  ) {
    this._key = `${KEY}:${owner}`;
  }

  /** Return the time in milliseconds; 0 where this is the first page that they open. */
  async at(): Promise<number> {
    const elsewhere = Number((await this._state?.fetch(KEY)) ?? 0);
    return Math.max(elsewhere, Number(this._storage.getItem(this._key)) || 0);
  }

  /** Remember that all up to this time was seen. */
  async mark(time: number): Promise<void> {
    this._storage.setItem(this._key, String(time));
    await this._state?.save(KEY, time);
  }

  private readonly _key: string;
}
