/**
 * State of one send dialog from the first answer to the job or schedule: keeps the preparation
 * current and sends once.
 */
import { ISignal, Signal } from '@lumino/signaling';
import { Api, ApiError } from './api';
import { begin, faults, IDraft, ISubject, tickedCells, toRequest } from './draft';
import { sentAsShown } from './offeredValues';
import { unreadable } from './outages';
import { isScheduled } from './scheduleDraft';
import type { IAccepted, IPreparation, ISendRequest, SendKind } from './tokens';

/** Delay after the last change before a preparation, in milliseconds. */
export const REST_MS = 120;

export interface ISendOptions {
  api: Pick<Api, 'prepare' | 'send' | 'schedule'>;
  subject: ISubject;
  kind: SendKind;
  memory: unknown;
  /** Create an idempotency key. */
  newKey: () => string;
}

/** Return the request of a preparation: without attachments, which have no effect on it. */
function asked(request: ISendRequest): ISendRequest {
  const cells = request.cells?.map(cell => ({ ...cell, attachments: {} }));
  return cells ? { ...request, cells } : request;
}

export class Sending {
  constructor(private readonly _options: ISendOptions) {
    this._draft = begin(_options.kind, _options.memory);
    this._key = _options.newKey();
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get subject(): ISubject {
    return this._options.subject;
  }

  get draft(): IDraft {
    return this._draft;
  }

  /** The last preparation. While `preparing`, it may be based on earlier answers. */
  get preparation(): IPreparation | null {
    return this._preparation;
  }

  get preparing(): boolean {
    return this._preparing;
  }

  get sending(): boolean {
    return this._sending !== null;
  }

  /** Error of the last submission or preparation. */
  get error(): ApiError | null {
    return this._error;
  }

  /** Whether Send is enabled: no fault, no known error, and no submission in progress. */
  get ready(): boolean {
    return !this.sending && Object.keys(faults(this._draft)).length === 0 && !this.blocked;
  }

  /** Whether the service rejects the current answers. */
  get blocked(): boolean {
    const known = this._preparing ? null : this._preparation;
    return (
      known !== null &&
      (known.refusal !== null ||
        known.preview?.starts === 'never' ||
        known.problems.some(problem => problem.level === 'error'))
    );
  }

  /** Change answers. The preparation follows after a delay. */
  update(change: Partial<IDraft>): void {
    this._draft = { ...this._draft, ...change };
    this._error = null;
    this._preparing = true;
    clearTimeout(this._rest);
    this._rest = setTimeout(() => void this.prepare(), REST_MS);
    this._changed.emit();
  }

  /** Prepare the submission. An earlier preparation in progress is aborted. */
  async prepare(): Promise<void> {
    this._asking?.abort();
    if (Object.keys(faults(this._draft)).length > 0) {
      this._preparing = false;
      this._changed.emit();
      return;
    }
    const asking = (this._asking = new AbortController());
    this._preparing = true;
    this._changed.emit();
    try {
      this._preparation = await this._options.api.prepare(asked(this._request()), asking.signal);
      this._error = null;
    } catch (error) {
      this._failed(error, asking.signal);
    }
    if (this._asking === asking) {
      this._preparing = false;
      this._changed.emit();
    }
  }

  /** Send the job, or create its schedule. Further calls meanwhile return the same result. */
  send(): Promise<IAccepted | null> {
    this._sending ??= this._sendOnce();
    return this._sending;
  }

  dispose(): void {
    clearTimeout(this._rest);
    this._asking?.abort();
    Signal.clearData(this);
  }

  private async _sendOnce(): Promise<IAccepted | null> {
    this._error = null;
    // Send the ticks that the user sees, regardless of later kernel answers.
    const shown = this._preparing ? null : this._preparation;
    const ticked = tickedCells(this._options.subject, this._draft, shown);
    this._changed.emit();
    try {
      const values = sentAsShown(this._draft, shown);
      const request = { ...this._request(), ticked, ...values };
      const { api } = this._options;
      return await (isScheduled(this._draft.schedule)
        ? api.schedule(request, this._key)
        : api.send(request, this._key));
    } catch (error) {
      this._failed(error, null);
      this._renewKeyAfter(error);
      this._sending = null;
      this._changed.emit();
      return null;
    }
  }

  private _failed(error: unknown, signal: AbortSignal | null): void {
    if (signal?.aborted) {
      return;
    }
    this._error = error instanceof ApiError ? error : new ApiError(0, 'answer', unreadable(error));
  }

  /**
   * Renew the key after a rejection: it created no job, so the next try is a new submission. After
   * a lost response the key stays: the job may exist and must not be created twice.
   */
  private _renewKeyAfter(error: unknown): void {
    if (error instanceof ApiError && error.refused) {
      this._key = this._options.newKey();
    }
  }

  private _request(): ISendRequest {
    return toRequest(this._options.subject, this._draft);
  }

  private readonly _changed = new Signal<this, void>(this);
  private _draft: IDraft;
  private _key: string;
  private _preparation: IPreparation | null = null;
  private _preparing = true;
  private _sending: Promise<IAccepted | null> | null = null;
  private _asking: AbortController | null = null;
  private _error: ApiError | null = null;
  private _rest: ReturnType<typeof setTimeout> | undefined;
}
