/** Live log: follows one worker and attempt by byte offset until the log ends. */
import { ISignal, Signal } from '@lumino/signaling';
import { Api, ApiError, ILogPlace } from './api';
import type { LogText as LogPiece } from './generated/pool';
import { LogText } from './logText';
import { LOG_CUT } from './outages';
import type { IServerEvent } from './stream';
import { followWhileVisible } from './visible';

/** Size of the shown tail of a long log, in bytes. */
const TAIL_BYTES = 256 * 1024;

export class LogFollower {
  constructor(
    private readonly _api: Pick<Api, 'logStream' | 'log'>,
    readonly place: ILogPlace
  ) {}

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  readonly text = new LogText();

  /**
   * Return the number of bytes before the first loaded byte. A long log is followed from near its
   * end.
   */
  get before(): number {
    return this._before ?? 0;
  }

  /** Whether the log is complete: its worker has ended and all data is loaded. */
  get ended(): boolean {
    return this._ended;
  }

  /** Return a sentence while the log cannot be read, else an empty string. */
  get trouble(): string {
    return this._trouble;
  }

  start(): void {
    followWhileVisible({
      open: (after, signal) => this._api.logStream(this.place, after ?? -TAIL_BYTES, signal),
      onOpen: () => this._setTrouble(''),
      onEvent: event => this._onEvent(event),
      onFailure: error => this._onFailure(error),
      signal: this._stop.signal
    });
  }

  /** Return the whole log from the service. */
  whole(): Promise<Blob> {
    return this._api.log(this.place);
  }

  dispose(): void {
    this._stop.abort();
    cancelAnimationFrame(this._frame);
    Signal.clearData(this);
  }

  private _onEvent(event: IServerEvent): boolean {
    if (event.type === 'end') {
      this._ended = true;
    } else if (event.type === 'log') {
      const piece = JSON.parse(event.data) as LogPiece;
      if (this._before === null) {
        this._before = piece.offset;
      } else if (piece.skipped) {
        this.text.skip(piece.skipped);
      }
      this.text.push(piece.text);
    }
    this._touch();
    return !this._ended;
  }

  /**
   * Handle an error. A log that does not exist yet (404 before the start) is requested again, as
   * after an outage.
   */
  private _onFailure(error: Error): void {
    const isEarly = error instanceof ApiError && error.status === 404;
    this._setTrouble(isEarly ? '' : error instanceof ApiError ? error.message : LOG_CUT);
  }

  private _setTrouble(trouble: string): void {
    this._trouble = trouble;
    this._touch();
  }

  private _touch(): void {
    if (!this._frame && !this._stop.signal.aborted) {
      this._frame = requestAnimationFrame(() => {
        this._frame = 0;
        this._changed.emit();
      });
    }
  }

  private readonly _changed = new Signal<this, void>(this);
  private readonly _stop = new AbortController();
  private _before: number | null = null;
  private _ended = false;
  private _trouble = '';
  private _frame = 0;
}
