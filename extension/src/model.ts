/**
 * Live model of jobs, quota and status: loaded once, updated by the event stream, reloaded after
 * each gap. All views of the page read from it.
 */
import { ISignal, Signal } from '@lumino/signaling';
import { Api, ApiError, NO_EXTENSION, Verb } from './api';
import type { JobDeleted, PoolNow } from './generated/pool';
import { STREAM_CUT } from './outages';
import type { IServerEvent } from './stream';
import { followWhileVisible } from './visible';
import type { FilledAction } from './generated/actions';
import type { IBenchpool, IConnection, IJob, IJobChange, IQuota, IStatus } from './tokens';

/** Interval within which changes reach the widgets as one update, in milliseconds. */
const GATHER_MS = 40;
/** Interval within which changes cause one reload of quota and status, in milliseconds. */
const FACTS_MS = 600;

/** Delay before a failed load is retried, in milliseconds. */
const RETRY_MS = 3000;

/** Listed jobs: the user's own, or all visible jobs. */
export type Scope = 'mine' | 'all';

/** State of a job lookup: `hidden` means removed or not visible to this user. */
export type Known = IJob | 'loading' | 'hidden';

export class JobsModel implements IBenchpool {
  constructor(readonly api: Api) {}

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get jobChanged(): ISignal<this, IJobChange> {
    return this._jobChanged;
  }

  get connection(): IConnection {
    return this._connection;
  }

  get quota(): IQuota | null {
    return this._quota;
  }

  get status(): IStatus | null {
    return this._status;
  }

  get scope(): Scope {
    return this._scope;
  }

  /** Whether the first list has arrived. */
  get loaded(): boolean {
    return this._loaded;
  }

  /** Jobs of the scope, newest first. */
  get jobs(): readonly IJob[] {
    this._sorted ??= [...this._jobs.values()]
      .filter(job => this._scope === 'all' || this.isMine(job))
      .sort(newestFirst);
    return this._sorted;
  }

  /** The user's own jobs in any scope, newest first. */
  get mine(): readonly IJob[] {
    return [...this._jobs.values()].filter(job => this.isMine(job)).sort(newestFirst);
  }

  isMine(job: IJob): boolean {
    return this._quota === null || job.user === this._quota.user;
  }

  job(id: string): IJob | null {
    return this._jobs.get(id) ?? null;
  }

  /** Return a job or the state of its lookup. A job outside the list is requested once. */
  known(id: string): Known {
    const job = this._jobs.get(id);
    if (job) {
      return job;
    }
    if (!this._asked.has(id) && this._loaded) {
      this._asked.set(id, 'loading');
      void this._ask(id);
    }
    return this._asked.get(id) ?? 'loading';
  }

  /** Start to follow the event stream. `dispose` stops it. */
  start(): void {
    followWhileVisible({
      open: (after, signal) => this.api.events(after, signal),
      onOpen: () => void this.refresh(),
      onEvent: event => this._onEvent(event),
      onFailure: error => {
        this._degrade(error);
        return !isFinal(error);
      },
      signal: this._stop.signal
    });
  }

  dispose(): void {
    this._stop.abort();
    clearTimeout(this._gather);
    clearTimeout(this._facts);
    clearTimeout(this._retry);
    Signal.clearData(this);
  }

  async setScope(scope: Scope): Promise<void> {
    this._scope = scope;
    this._sorted = null;
    this._changed.emit(); // at once, so that the selected scope is shown
    await this.refresh();
  }

  /** Reload jobs, quota and status. */
  async refresh(): Promise<void> {
    try {
      const marks = new Map(this._marks);
      const [quota, jobs] = await Promise.all([
        this.api.quota(),
        this.api.jobs(this._scope === 'all'),
        this._loadStatus()
      ]);
      this._quota = quota;
      this._replace(jobs, marks);
      this._loaded = true;
      this._connect({ state: 'live', text: '' });
    } catch (error) {
      this._degrade(error as Error);
      if (!isFinal(error)) {
        this._retryLater();
      }
    }
  }

  /** Run an action on a job. */
  act(id: string, verb: Verb): Promise<IJob> {
    return this._take(id, this.api.act(id, verb));
  }

  /** Run an action with fields on a job. */
  fill(id: string, action: FilledAction, filled: object): Promise<IJob> {
    return this._take(id, this.api.fill(id, action, filled));
  }

  /** Run a job again unchanged. */
  async again(id: string, key: string): Promise<IJob> {
    const job = await this.api.again(id, key);
    this.acceptNew(job);
    return job;
  }

  /** Add a new job unless an event has added it. */
  acceptNew(job: IJob): void {
    if (!this._jobs.has(job.id)) {
      this.accept(job);
    }
  }

  accept(job: IJob): void {
    const previous = this._jobs.get(job.id) ?? null;
    this._jobs.set(job.id, job);
    this._marks.set(job.id, (this._marks.get(job.id) ?? 0) + 1);
    this._asked.delete(job.id);
    this._touch();
    if (previous?.state !== job.state) {
      this._jobChanged.emit({ job, previous });
    }
  }

  /** Accept the response for a job unless an event about it arrived before. */
  private async _take(id: string, answer: Promise<IJob>): Promise<IJob> {
    const mark = this._marks.get(id) ?? 0;
    const job = await answer;
    if ((this._marks.get(id) ?? 0) === mark) {
      this.accept(job);
    }
    return job;
  }

  private _retryLater(): void {
    clearTimeout(this._retry);
    if (!this._stop.signal.aborted) {
      this._retry = setTimeout(() => void this.refresh(), RETRY_MS);
    }
  }

  private _onEvent(event: IServerEvent): void {
    if (event.type === 'job') {
      this.accept(JSON.parse(event.data) as IJob);
      this._wantFacts();
    } else if (event.type === 'deleted') {
      this._forget((JSON.parse(event.data) as JobDeleted).id);
    } else if (event.type === 'reset') {
      void this.refresh();
    } else {
      this._takePool(JSON.parse(event.data) as PoolNow);
    }
  }

  /** Merge a pool event, which contains the changed parts of the status. */
  private _takePool(part: PoolNow): void {
    if (this._status) {
      this._status = { ...this._status, ...part };
    }
    this._touch();
    this._wantFacts();
  }

  private _forget(id: string): void {
    this._jobs.delete(id);
    this._touch();
  }

  /** Replace the list, but keep jobs that events changed during the request. */
  private _replace(jobs: readonly IJob[], marks: ReadonlyMap<string, number>): void {
    const listed = new Set(jobs.map(job => job.id));
    for (const id of [...this._jobs.keys()]) {
      if (!listed.has(id) && this._marks.get(id) === marks.get(id)) {
        this._jobs.delete(id);
      }
    }
    for (const job of jobs) {
      if (this._marks.get(job.id) === marks.get(job.id)) {
        this.accept(job);
      }
    }
    this._touch();
  }

  private async _ask(id: string): Promise<void> {
    try {
      this.accept((await this.api.job(id)).job);
    } catch (error) {
      if (error instanceof ApiError && error.refused) {
        this._asked.set(id, 'hidden');
      } else {
        this._asked.delete(id);
      }
      this._touch();
    }
  }

  private async _loadStatus(): Promise<void> {
    this._status = await this.api.status();
  }

  private _wantFacts(): void {
    this._facts ??= setTimeout(() => {
      this._facts = undefined;
      void this._loadFacts();
    }, FACTS_MS);
  }

  private async _loadFacts(): Promise<void> {
    try {
      const [quota] = await Promise.all([this.api.quota(), this._loadStatus()]);
      this._quota = quota;
      this._touch();
    } catch {
      // The stream detects and reports an outage.
    }
  }

  private _degrade(error: Error): void {
    const text = error instanceof ApiError ? error.message : STREAM_CUT;
    this._connect({ state: 'degraded', text });
  }

  private _connect(connection: IConnection): void {
    this._connection = connection;
    this._touch();
  }

  private _touch(): void {
    this._sorted = null;
    this._gather ??= setTimeout(() => {
      this._gather = undefined;
      this._changed.emit();
    }, GATHER_MS);
  }

  private readonly _changed = new Signal<this, void>(this);
  private readonly _jobChanged = new Signal<this, IJobChange>(this);
  private readonly _stop = new AbortController();
  private readonly _jobs = new Map<string, IJob>();
  private readonly _asked = new Map<string, 'loading' | 'hidden'>();
  /** Number of updates per job ID, to detect responses that are older than an event. */
  private readonly _marks = new Map<string, number>();
  private _sorted: readonly IJob[] | null = null;
  private _connection: IConnection = {
    state: 'connecting',
    text: 'Connecting to the training pool…'
  };
  private _quota: IQuota | null = null;
  private _status: IStatus | null = null;
  private _scope: Scope = 'mine';
  private _loaded = false;
  private _gather: ReturnType<typeof setTimeout> | undefined;
  private _retry: ReturnType<typeof setTimeout> | undefined;
  private _facts: ReturnType<typeof setTimeout> | undefined;
}

/** Return whether retries are useless, since the server extension is missing. */
function isFinal(error: unknown): boolean {
  return error instanceof ApiError && error.code === NO_EXTENSION;
}

function newestFirst(a: IJob, b: IJob): number {
  return Date.parse(b.submitted) - Date.parse(a.submitted) || (a.id < b.id ? -1 : 1);
}
