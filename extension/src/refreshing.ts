/** Repeated loads of an answer after news of it. */

/** Least time between the starts of two loads, in multiples of the time of the last one. */
const SHARE = 4;

/** Loads at once, and after each news: one load at a time, the last news never without a load. */
export class Refresher {
  /**
   * @param load Loads and shows the answer; it never rejects.
   * @param leastMs Least time between the starts of two loads, in milliseconds. Slow loads are
   *   repeated less often, so that many pages do not overload the service.
   */
  constructor(
    private readonly load: () => Promise<void>,
    private readonly leastMs: number
  ) {}

  /** Load as soon as the time since the last load permits. */
  want(): void {
    this._wanted = true;
    if (this._loading || this._timer !== undefined || this._isDisposed) {
      return;
    }
    const wait = Math.max(0, this._began + Math.max(this.leastMs, SHARE * this._took) - Date.now());
    this._timer = setTimeout(() => void this._run(), wait);
  }

  dispose(): void {
    this._isDisposed = true;
    clearTimeout(this._timer);
  }

  private async _run(): Promise<void> {
    this._timer = undefined;
    this._wanted = false;
    this._loading = true;
    this._began = Date.now();
    await this.load();
    this._took = Date.now() - this._began;
    this._loading = false;
    if (this._wanted) {
      this.want();
    }
  }

  private _began = 0;
  private _took = 0;
  private _loading = false;
  private _wanted = false;
  private _isDisposed = false;
  private _timer: ReturnType<typeof setTimeout> | undefined;
}
