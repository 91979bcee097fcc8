/** Access requests for projects: the user's own, and requests that the user can decide. */
import { ISignal, Signal } from '@lumino/signaling';
import type { AccessAction, Api } from './api';
import { ACCESS } from './generated/actions';
import type { IWish } from './tokens';
import { command } from './twins';

/** Poll interval while the page is visible, in milliseconds. */
const EVERY_MS = 60_000;

/** Arguments of an access request or of its decision. */
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

  /** Start polling. `dispose` stops it. */
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

  /** Reload the requests. Errors are ignored here: the panel reports an outage. */
  async refresh(): Promise<void> {
    try {
      this._all = await this._api.wishes();
      this._changed.emit();
    } catch {
      return;
    }
  }

  /** Request access, add a member or decline, then reload. Errors are thrown unchanged. */
  async act(action: AccessAction, given: IAccess): Promise<void> {
    await this._api.access(action, given);
    await this.refresh();
  }

  private readonly _changed = new Signal<this, void>(this);
  private _all: readonly IWish[] = [];
  private _timer: ReturnType<typeof setInterval> | undefined;
}

/** Return the equivalent terminal command. */
export function accessCommand(action: AccessAction, given: IAccess): string {
  return command(ACCESS[action], [], { ...given });
}

/** Return the text of an access request for its reader. */
export function wishText(wish: IWish): string {
  if (wish.decides) {
    return `${wish.user} asks to belong to project ${wish.project}${wish.reason ? `: ${wish.reason}` : '.'}`;
  }
  return wish.declined === null
    ? `You asked to belong to project ${wish.project}: its leads or an administrator decide.`
    : `Project ${wish.project} declined: ${wish.declined}`;
}
