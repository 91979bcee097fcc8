/**
 * One dialog's way from first answer to job: keeps the preparation current, and sends once.
 */
import { ISignal, Signal } from '@lumino/signaling';
import { Api, ApiError } from './api';
import { begin, faults, IDraft, ISubject, tickedCells, toRequest } from './draft';
import { sentAsShown } from './offeredValues';
import { unreadable } from './outages';
import type { IJob, IPreparation, ISendRequest, SendKind } from './tokens';

/** Answers are prepared when they have rested for this long. */
export const REST_MS = 120;

export interface ISendOptions {
  api: Pick<Api, 'prepare' | 'send'>;
  subject: ISubject;
  kind: SendKind;
  memory: unknown;
  /** Makes a new idempotency key. */
  newKey: () => string;
}

/** What is asked before it is sent: without pictures in the text, which change nothing. */
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

  /** The last preparation; it may be of earlier answers while `preparing`. */
  get preparation(): IPreparation | null {
    return this._preparation;
  }

  get preparing(): boolean {
    return this._preparing;
  }

  get sending(): boolean {
    return this._sending !== null;
  }

  /** Why the last sending or preparation failed. */
  get error(): ApiError | null {
    return this._error;
  }

  /** Whether Send may be pressed: no fault, no known error, nothing under way. */
  get ready(): boolean {
    return !this.sending && Object.keys(faults(this._draft)).length === 0 && !this.blocked;
  }

  /** Whether what is prepared now is known to be refused. */
  get blocked(): boolean {
    const known = this._preparing ? null : this._preparation;
    return (
      known !== null &&
      (known.refusal !== null ||
        known.preview?.starts === 'never' ||
        known.problems.some(problem => problem.level === 'error'))
    );
  }

  /** Change answers; the preparation follows when they rest. */
  update(change: Partial<IDraft>): void {
    this._draft = { ...this._draft, ...change };
    this._error = null;
    this._preparing = true;
    clearTimeout(this._rest);
    this._rest = setTimeout(() => void this.prepare(), REST_MS);
    this._changed.emit();
  }

  /** Ask what would happen; an older question under way is dropped. */
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

  /** Send; every further call while it is under way gets the same job. */
  send(): Promise<IJob | null> {
    this._sending ??= this._sendOnce();
    return this._sending;
  }

  dispose(): void {
    clearTimeout(this._rest);
    this._asking?.abort();
    Signal.clearData(this);
  }

  private async _sendOnce(): Promise<IJob | null> {
    this._error = null;
    // What the user sees ticked is what is sent, whatever the kernel says meanwhile.
    const shown = this._preparing ? null : this._preparation;
    const ticked = tickedCells(this._options.subject, this._draft, shown);
    this._changed.emit();
    try {
      const values = sentAsShown(this._draft, shown);
      return await this._options.api.send({ ...this._request(), ticked, ...values }, this._key);
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
   * What was refused made no job, so the next try is another submission with another key. After
   * a lost answer the key stays: the job may exist already, and must not be made twice.
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
  private _sending: Promise<IJob | null> | null = null;
  private _asking: AbortController | null = null;
  private _error: ApiError | null = null;
  private _rest: ReturnType<typeof setTimeout> | undefined;
}
