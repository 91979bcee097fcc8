/**
 * What this notebook server knows of its bench, asked from time to time, and the two answers that
 * its owner may give.
 */
import { ISignal, Signal } from '@lumino/signaling';
import type { Api } from './api';
import type { IBenchNow } from './tokens';

/** Between two questions while the server holds GPUs, and while it does not. */
const ASK_MS = 4000;
const RARELY_MS = 30_000;

export class BenchModel {
  constructor(private readonly _api: Api) {}

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Null before the first answer, and while the server does not answer. */
  get now(): IBenchNow | null {
    return this._now;
  }

  /** Begin to ask; ends with `dispose`. */
  start(): void {
    void this._ask();
  }

  dispose(): void {
    this._over = true;
    clearTimeout(this._timer);
    Signal.clearData(this);
  }

  /** Keep the bench for a while. Errors: those of the scheduler. */
  async keep(): Promise<void> {
    this._take(await this._api.keepBench());
  }

  /** Give the GPUs back. Errors: those of the scheduler, and what still runs. */
  async giveBack(): Promise<void> {
    this._take(await this._api.giveBench());
  }

  private async _ask(): Promise<void> {
    if (!document.hidden || this._now === null) {
      try {
        this._take(await this._api.bench());
      } catch {
        this._take(null); // the item of jobs says what is wrong
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
