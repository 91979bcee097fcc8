/**
 * Model of the bench of this notebook server: polls its state and sends the two answers of its
 * owner.
 */
import { ISignal, Signal } from '@lumino/signaling';
import type { Api } from './api';
import type { IBenchNow } from './tokens';

/** Poll interval while the server holds GPUs, in milliseconds. Without GPUs it is `RARELY_MS`. */
const ASK_MS = 4000;
const RARELY_MS = 30_000;

export class BenchModel {
  constructor(private readonly _api: Api) {}

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Return the bench, or null before the first response and during an outage. */
  get now(): IBenchNow | null {
    return this._now;
  }

  /** Start polling. `dispose` stops it. */
  start(): void {
    void this._ask();
  }

  dispose(): void {
    this._over = true;
    clearTimeout(this._timer);
    Signal.clearData(this);
  }

  /** Keep the bench for a period. Throws the errors of the scheduler. */
  async keep(): Promise<void> {
    this._take(await this._api.keepBench());
  }

  /**
   * Release the GPUs. Throws the errors of the scheduler, and an error for programs that still run.
   */
  async release(): Promise<void> {
    this._take(await this._api.releaseBench());
  }

  private async _ask(): Promise<void> {
    if (!document.hidden || this._now === null) {
      try {
        this._take(await this._api.bench());
      } catch {
        this._take(null); // the job item in the status bar shows the cause
      }
    }
    if (!this._over) {
      const holds = Boolean(this._now?.idleness);
      this._timer = setTimeout(() => void this._ask(), holds ? ASK_MS : RARELY_MS);
    }
  }

  private _take(now: IBenchNow | null): void {
    this._now = now;
    this._changed.emit();
  }

  private _now: IBenchNow | null = null;
  private _over = false;
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private readonly _changed = new Signal<this, void>(this);
}
