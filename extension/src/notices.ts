/**
 * What is told without being asked: a job of mine has ended, now or while I was away; and state
 * changes, spoken once to screen readers.
 */
import { Notification } from '@jupyterlab/apputils';
import type { IStateDB } from '@jupyterlab/statedb';
import { announcement, isTerminal } from './format';
import { duration, STATES } from './phrases';
import type { JobsModel } from './model';
import type { IJob, IJobChange } from './tokens';

const SEEN_KEY = '@benchpool/lab:seen';
const TOAST_MS = 8000;
const SAVE_EVERY_MS = 15_000;
/** Jobs named in one notice; the rest is counted. */
const NAMED = 3;

export interface INoticeOptions {
  model: JobsModel;
  state: IStateDB | null;
  show: (id: string) => void;
}

export class Notices {
  constructor(private readonly _options: INoticeOptions) {
    this._live = document.createElement('div');
    this._live.className = 'bp-hidden';
    this._live.setAttribute('aria-live', 'polite');
    document.body.appendChild(this._live);
    _options.model.jobChanged.connect((model, change) => this._onJob(model, change), this);
    _options.model.changed.connect(model => this._onChanged(model), this);
  }

  /** Whether ends are shown as notifications (a setting). */
  enabled = true;

  private _onJob(model: JobsModel, { job, previous }: IJobChange): void {
    if (!previous || !model.isMine(job)) {
      return;
    }
    if (this.enabled && isTerminal(job.state) && job.state !== 'cancelled') {
      this._ended(job);
    } else {
      this._live.textContent = announcement(job);
    }
  }

  private _ended(job: IJob): void {
    const took = job.started && job.ended ? ` after ${between(job.started, job.ended)}` : '';
    const tell = job.state === 'failed' ? Notification.error : Notification.success;
    const status = job.state === 'failed' && job.exit_code ? `, exit code ${job.exit_code}` : '';
    tell(`“${job.name}” has ${STATES[job.state]}${took}${status}.`, {
      autoClose: TOAST_MS,
      actions: [{ label: 'Show', callback: () => this._options.show(job.id) }]
    });
  }

  private _onChanged(model: JobsModel): void {
    if (model.loaded && model.connection.state === 'live') {
      void this._away(model);
    }
  }

  /** Once after loading: what ended since this user last had the page open. */
  private async _away(model: JobsModel): Promise<void> {
    const { state } = this._options;
    const now = Date.now();
    if (!state || now - this._savedAt < SAVE_EVERY_MS) {
      return;
    }
    const isFirst = this._savedAt === 0;
    this._savedAt = now;
    const seen = isFirst ? Number(await state.fetch(SEEN_KEY)) : NaN;
    if (seen > 0 && this.enabled) {
      this._tellAway(endedSince(model.mine, seen));
    }
    await state.save(SEEN_KEY, now);
  }

  private _tellAway(jobs: readonly IJob[]): void {
    const [first] = jobs;
    if (!first) {
      return;
    }
    const names = jobs.slice(0, NAMED).map(job => `“${job.name}” has ${STATES[job.state]}`);
    const more = jobs.length > NAMED ? ` and ${jobs.length - NAMED} more` : '';
    Notification.info(`While you were away: ${names.join(', ')}${more}.`, {
      autoClose: TOAST_MS,
      actions: [{ label: 'Show', callback: () => this._options.show(first.id) }]
    });
  }

  private readonly _live: HTMLElement;
  private _savedAt = 0;
}

/** Jobs that ended after a time in milliseconds, newest first. */
export function endedSince(jobs: readonly IJob[], since: number): IJob[] {
  return jobs
    .filter(job => job.ended !== null && Date.parse(job.ended) > since)
    .filter(job => job.state !== 'cancelled')
    .sort((a, b) => Date.parse(b.ended!) - Date.parse(a.ended!));
}

function between(from: string, to: string): string {
  return duration((Date.parse(to) - Date.parse(from)) / 1000);
}
