/**
 * Notifications that need no request: ended jobs and sweeps of the user, also during an absence.
 * State changes are announced once to screen readers.
 */
import { Notification } from '@jupyterlab/apputils';
import type { IStateDB } from '@jupyterlab/statedb';
import { failedAt } from './failing';
import { announcement, forToast, isTerminal } from './format';
import { LastSeen } from './lastSeen';
import { duration, STATES } from './phrases';
import type { JobsModel } from './model';
import type { IJob, IJobChange } from './tokens';

const TOAST_MS = 8000;
const SAVE_EVERY_MS = 15_000;
/** Maximum number of jobs named in a notification. Further jobs are counted. */
const NAMED = 3;

export interface INoticeOptions {
  model: JobsModel;
  state: IStateDB | null;
  /** Address of the user's server. */
  server: string;
  show: (id: string) => void;
  /** Open the place of a failure. */
  failure: (job: IJob) => void;
}

export class Notices {
  constructor(private readonly _options: INoticeOptions) {
    this._seen = new LastSeen(_options.state, localStorage, _options.server);
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
    const hasEnded = isTerminal(job.state) && !isTerminal(previous.state);
    if (hasEnded) {
      // Clocks differ: a reported end must not be reported again as a future end.
      void this._seen.mark(Math.max(Date.now(), Date.parse(job.ended ?? '') || 0));
    }
    if (this.enabled && hasEnded && job.trial) {
      void this._trialEnded(model, job, job.trial.sweep);
    } else if (this.enabled && hasEnded && job.state !== 'cancelled') {
      this._ended(job);
    } else if (this.enabled && isNewMoment(job, previous)) {
      this._paused(job);
    } else if (this.enabled && hasEnded && byOthers(job)) {
      this._notify(job, 'warning', `“${job.name}”: ${job.reason!.text}`);
    } else if (hasEnded || !isTerminal(job.state)) {
      this._live.textContent = announcement(job);
    }
  }

  /**
   * Report the stage of a pause: saving, saved or back. Each job has one notification at a time.
   */
  private _paused(job: IJob): void {
    const { stage, text, until } = job.pause!;
    if (stage === 'saving') {
      const time = until ? ` until ${new Date(until).toLocaleTimeString()}` : '';
      this._notify(job, 'warning', `“${job.name}”: ${text}${time}.`);
    } else if (stage === 'saved') {
      const next = job.state === 'queued' ? 'It resumes by itself.' : (job.reason?.remedy ?? '');
      this._notify(job, 'info', `“${job.name}”: ${text}. ${next}`);
    } else {
      this._notify(job, 'success', `“${job.name}” is ${text}.`);
    }
  }

  private _notify(job: IJob, type: 'info' | 'warning' | 'success', text: string): void {
    const earlier = this._shown.get(job.id);
    if (earlier) {
      Notification.dismiss(earlier);
    }
    const actions = [{ label: 'Show', callback: () => this._options.show(job.id) }];
    this._shown.set(
      job.id,
      Notification.emit(forToast(text), type, { autoClose: TOAST_MS, actions })
    );
  }

  /** Report a sweep once, after its last trial. */
  private async _trialEnded(model: JobsModel, job: IJob, id: string): Promise<void> {
    const sweep = await model.api.sweep(id).catch(() => null);
    const isOver =
      sweep && sweep.state !== 'running' && sweep.trials.every(row => row.state !== 'open');
    if (isOver && !this._over.has(id)) {
      this._over.add(id);
      const best = sweep.trials.find(row => row.number === sweep.best)?.job ?? job.id;
      Notification.success(
        forToast(
          `${job.trial?.array ? 'Array' : 'Sweep'} “${sweep.name}” has ended. ${sweep.text}`
        ),
        {
          autoClose: TOAST_MS,
          actions: [{ label: 'Show', callback: () => this._options.show(best) }]
        }
      );
    }
  }

  private _ended(job: IJob): void {
    const took = job.started && job.ended ? ` after ${between(job.started, job.ended)}` : '';
    const notify = job.state === 'failed' ? Notification.error : Notification.success;
    const at = failedAt(job);
    // A notification is short, so the cause of a failure stands alone.
    const what = job.state === 'failed' ? job.reason?.text : null;
    notify(forToast(what ?? `“${job.name}” has ${STATES[job.state]}${took}.`), {
      autoClose: TOAST_MS,
      actions: [
        { label: 'Show', callback: () => this._options.show(job.id) },
        ...(at ? [{ label: at.label, callback: () => this._options.failure(job) }] : [])
      ]
    });
  }

  private _onChanged(model: JobsModel): void {
    if (model.loaded && model.connection.state === 'live') {
      void this._away(model);
    }
  }

  /**
   * Report jobs that ended since the user's last visit, once after loading. Later calls store the
   * current time.
   */
  private async _away(model: JobsModel): Promise<void> {
    const now = Date.now();
    if (now - this._savedAt < SAVE_EVERY_MS) {
      return;
    }
    const isFirst = this._savedAt === 0;
    this._savedAt = now;
    const seen = isFirst ? await this._seen.at() : 0;
    if (seen > 0 && this.enabled) {
      this._notifyAway(endedSince(model.mine, seen));
    }
    await this._seen.mark(now);
  }

  private _notifyAway(jobs: readonly IJob[]): void {
    const [first] = jobs;
    if (!first) {
      return;
    }
    const names = jobs.slice(0, NAMED).map(job => `“${job.name}” has ${STATES[job.state]}`);
    const more = jobs.length > NAMED ? ` and ${jobs.length - NAMED} more` : '';
    Notification.info(forToast(`While you were away: ${names.join(', ')}${more}.`), {
      autoClose: TOAST_MS,
      actions: [{ label: 'Show', callback: () => this._options.show(first.id) }]
    });
  }

  private readonly _shown = new Map<string, string>();
  /** IDs of sweeps whose end was reported. */
  private readonly _over = new Set<string>();
  private readonly _live: HTMLElement;
  private readonly _seen: LastSeen;
  private _savedAt = 0;
}

/** Return whether the pause of a job has a new stage. */
export function isNewMoment(job: IJob, previous: IJob): boolean {
  const [now, before] = [job.pause, previous.pause];
  return Boolean(now) && (now?.stage !== before?.stage || now?.at !== before?.at);
}

/** Return whether another user, for example an administrator, ended or paused the job. */
function byOthers(job: IJob): boolean {
  const by = job.reason?.numbers.by;
  return typeof by === 'string' && by !== job.user;
}

/** Return jobs that ended after a time in milliseconds, newest first, without cancelled jobs. */
export function endedSince(jobs: readonly IJob[], since: number): IJob[] {
  return jobs
    .filter(job => job.ended !== null && Date.parse(job.ended) > since)
    .filter(job => job.state !== 'cancelled')
    .sort((a, b) => Date.parse(b.ended!) - Date.parse(a.ended!));
}

function between(from: string, to: string): string {
  return duration((Date.parse(to) - Date.parse(from)) / 1000);
}
