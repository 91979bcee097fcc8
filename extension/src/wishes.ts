/**
 * Who asks to belong to a project: one's own wishes, and those that one may decide.
 */
import { ISignal, Signal } from '@lumino/signaling';
import type { AccessAction, Api } from './api';
import { ACCESS } from './generated/actions';
import type { IWish } from './tokens';
import { command } from './twins';

/** How often it is asked who asks, while the page is seen. */
const EVERY_MS = 60_000;

/** What is given with a wish or with its answer. */
export interface IAccess {
  project: string;
  user?: string;
  reason?: string;
}

export class Wishes {
  constructor(private readonly _api: Pick<Api, 'wishes' | 'access'>) {}

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get all(): readonly IWish[] {
    return this._all;
  }

  /** Begin to look; ends with `dispose`. */
  start(): void {
    void this.refresh();
    this._timer = setInterval(() => {
      if (!document.hidden) {
        void this.refresh();
      }
    }, EVERY_MS);
  }

  dispose(): void {
    clearInterval(this._timer);
    Signal.clearData(this);
  }

  /** Look anew. What cannot be asked is not told here: the panel says that the pool is silent. */
  async refresh(): Promise<void> {
    try {
      this._all = await this._api.wishes();
      this._changed.emit();
    } catch {
      return;
    }
  }

  /** Ask, let in or decline; then look anew. A refusal is thrown as it came. */
  async act(action: AccessAction, given: IAccess): Promise<void> {
    await this._api.access(action, given);
    await this.refresh();
  }

  private readonly _changed = new Signal<this, void>(this);
  private _all: readonly IWish[] = [];
  private _timer: ReturnType<typeof setInterval> | undefined;
}

/** The same in a terminal. */
export function accessCommand(action: AccessAction, given: IAccess): string {
  return command(ACCESS[action], [], { ...given });
}

/** What a wish says to who reads it. */
export function wishText(wish: IWish): string {
  if (wish.decides) {
    return `${wish.user} asks to belong to project ${wish.project}${wish.reason ? `: ${wish.reason}` : '.'}`;
  }
  return wish.declined === null
    ? `You asked to belong to project ${wish.project}: its leads or an administrator decide.`
    : `Project ${wish.project} declined: ${wish.declined}`;
}
