/** Access requests for projects: the user's own, and requests that the user can decide. */
import { ISignal, Signal } from '@lumino/signaling';
import type { AccessAction, Api } from './api';
import { ACCESS } from './generated/actions';
import type { IAccessRequest } from './tokens';
import { command } from './twins';

/** Poll interval while the page is visible, in milliseconds. */
const EVERY_MS = 60_000;

/** Arguments of an access request or of its decision. */
export interface IAccess {
  project: string;
  user?: string;
  reason?: string;
}

export class AccessRequests {
  constructor(private readonly _api: Pick<Api, 'accessRequests' | 'access'>) {}

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get all(): readonly IAccessRequest[] {
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
      this._all = await this._api.accessRequests();
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
  private _all: readonly IAccessRequest[] = [];
  private _timer: ReturnType<typeof setInterval> | undefined;
}

/** Return the equivalent terminal command. */
export function accessCommand(action: AccessAction, given: IAccess): string {
  return command(ACCESS[action], [], { ...given });
}

/** Return the text of an access request for its reader. */
export function accessRequestText(request: IAccessRequest): string {
  if (request.decides) {
    return `${request.user} requests access to project ${request.project}${request.reason ? `: ${request.reason}` : '.'}`;
  }
  return request.declined === null
    ? `You requested access to project ${request.project}. Its leads or an administrator decide.`
    : `Project ${request.project} declined: ${request.declined}`;
}
