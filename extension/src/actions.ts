/**
 * User actions on a job: pause, resume, cancel, send again, change, open. Actions run immediately
 * and offer Undo where possible. A dialog opens only if the action has fields or loses work, and it
 * names the loss.
 */
import { Dialog, Notification, showDialog, showErrorMessage } from '@jupyterlab/apputils';
import { UUID } from '@lumino/coreutils';
import { CHANGE, outcome, remarks, staying } from './changing';
import { asked, doneText, former, present } from './filling';
import { showFormDialog } from './formDialog';
import { forToast, isOnGpus, isTerminal, JobAction, lossOf } from './format';
import { FILLED_ACTIONS } from './generated/actions';
import type { JobsModel } from './model';
import { kindOf } from './sweepModel';
import type { IChangeRequest, IJob } from './tokens';
import { jobCommand } from './twins';

/** Display time of a toast, in milliseconds. */
const TOAST_MS = 6000;

type Act = (job: IJob, wanted?: IChangeRequest) => Promise<void>;

export class JobActions {
  constructor(
    private readonly _model: JobsModel,
    /** Callback that shows a job in the panel. */
    private readonly _show: (id: string) => void
  ) {
    _model.jobChanged.connect((_, { job, previous }) => {
      const ends = previous && !isTerminal(previous.state) && isTerminal(job.state);
      // The toast of a cancellation before the start stays: its Undo sends the job again.
      if (ends && job.state !== 'cancelled') {
        this._withdraw(job);
      }
    });
  }

  /** Run an action. With `wanted`, a change runs without a dialog. */
  async run(action: JobAction, job: IJob, wanted?: IChangeRequest): Promise<void> {
    this._withdraw(job);
    await orShowError(job, () => this._table[action]?.(job, wanted) ?? this._fill(action, job));
  }

  /** Report that a job was sent, with buttons to show it and to undo the submission. */
  sent(job: IJob): void {
    if (job.trial) {
      const { sweep, name, array } = job.trial;
      const { kind, each } = kindOf(array);
      this._toast(`${array ? 'Array' : 'Sweep'} “${name}” was sent to training.`, job, {
        label: 'Undo',
        caption: `Stop ${kind} ${name} and its ${each}s`,
        undo: () => this._model.api.stopSweep(sweep)
      });
      return;
    }
    this._toast(`“${job.name}” was sent to training.`, job, {
      label: 'Undo',
      caption: `Cancel ${job.name}`,
      undo: () => this._model.act(job.id, 'cancel')
    });
  }

  private async _pause(job: IJob): Promise<void> {
    await this._model.act(job.id, 'pause');
    const text = isOnGpus(job.state)
      ? `“${job.name}” saves its state and leaves its GPUs. It continues when you resume it.`
      : `“${job.name}” is paused and does not start until you resume it.`;
    this._toast(text, job, {
      label: 'Undo',
      caption: `Resume ${job.name}`,
      undo: () => this._undoPause(job)
    });
  }

  /** Resume a job after it is paused: a job that is still saving cannot resume. */
  private async _undoPause(job: IJob): Promise<IJob> {
    await this._paused(job.id);
    return this._model.act(job.id, 'resume');
  }

  private _paused(id: string): Promise<void> {
    return new Promise(resolve => {
      const look = () => {
        if (this._model.job(id)?.state !== 'pausing') {
          this._model.changed.disconnect(look);
          resolve();
        }
      };
      this._model.changed.connect(look);
      look();
    });
  }

  private async _resume(job: IJob): Promise<void> {
    await this._model.act(job.id, 'resume');
  }

  private async _cancel(job: IJob): Promise<void> {
    if (job.state === 'queued' && job.attempt === 0) {
      await this._model.act(job.id, 'cancel');
      this._toast(`“${job.name}” was cancelled before it started.`, job, {
        label: 'Undo',
        caption: `Send ${job.name} again, at the end of the queue`,
        undo: () => this._model.again(job.id, UUID.uuid4())
      });
    } else if (await confirmed(job, await this._attemptStart(job))) {
      await this._model.act(job.id, 'cancel');
    }
  }

  /** Return the start of the current attempt, which the job itself does not contain. */
  private async _attemptStart(job: IJob): Promise<string | null> {
    const { attempts } = await this._model.api.job(job.id);
    return attempts.find(one => one.attempt === job.attempt)?.started ?? null;
  }

  private async _again(job: IJob): Promise<void> {
    this.sent(await this._model.again(job.id, UUID.uuid4()));
  }

  private async _change(job: IJob, given?: IChangeRequest): Promise<void> {
    const wanted = given ?? (await this._whatChanges(job));
    if (!wanted) {
      return;
    }
    await this._model.fill(job.id, 'change', wanted);
    const before = asked(CHANGE, former(present(CHANGE, job), wanted));
    const back = {
      label: 'Undo',
      caption: `Undo the change of ${job.name}`,
      undo: () => this._model.fill(job.id, 'change', before)
    };
    this._toast(outcome(job, wanted), job, Object.keys(before).length > 0 ? back : null);
  }

  private async _whatChanges(job: IJob): Promise<IChangeRequest | null> {
    const { fixed } = await this._model.api.job(job.id);
    const about = { staying: staying(job, fixed), remarks: remarks(job) };
    const filled = await showFormDialog(CHANGE, job, about);
    return filled && asked(CHANGE, filled);
  }

  /** Run an action that has no method here, with fields and texts from the action table. */
  private async _fill(name: JobAction, job: IJob): Promise<void> {
    const action = FILLED_ACTIONS.find(one => one.name === name);
    const wanted = action && (await showFormDialog(action, job));
    if (!wanted) {
      return;
    }
    const now = await this._model.fill(job.id, action.name, wanted);
    this._toast(doneText(action, now), job, {
      label: 'Undo',
      caption: `Undo ${action.label} of ${now.name}`,
      undo: () => this._model.fill(job.id, action.name, former(present(action, job), wanted))
    });
  }

  private _toast(
    text: string,
    job: IJob,
    back: { label: string; caption: string; undo: () => Promise<unknown> } | null
  ): void {
    this._withdraw(job);
    const toast = Notification.success(forToast(text), {
      autoClose: TOAST_MS,
      actions: [
        { label: 'Show', caption: `Show ${job.name}`, callback: () => this._show(job.id) },
        ...(back
          ? [
              {
                label: back.label,
                caption: back.caption,
                callback: () => void orShowError(job, back.undo)
              }
            ]
          : [])
      ]
    });
    this._toasts.set(job.id, toast);
  }

  /** Dismiss the last toast of a job: its Undo is out of date. */
  private _withdraw(job: IJob): void {
    const toast = this._toasts.get(job.id);
    if (toast !== undefined) {
      Notification.dismiss(toast);
      this._toasts.delete(job.id);
    }
  }

  /** ID of the last toast by job ID. */
  private readonly _toasts = new Map<string, string>();
  private readonly _table: Readonly<Partial<Record<JobAction, Act>>> = {
    pause: job => this._pause(job),
    resume: job => this._resume(job),
    cancel: job => this._cancel(job),
    again: job => this._again(job),
    change: (job, wanted) => this._change(job, wanted)
  };
}

/** Run an action and show an error in a dialog: a toast is cut after 140 characters. */
async function orShowError(job: IJob, act: () => Promise<unknown>): Promise<void> {
  try {
    await act();
  } catch (error) {
    await showErrorMessage(job.name, (error as Error).message);
  }
}

async function confirmed(job: IJob, since: string | null): Promise<boolean> {
  const answer = await showDialog({
    title: `Cancel “${job.name}”?`,
    body: `${lossOf(job, since, Date.now())} In a terminal: ${jobCommand('cancel', job.id)}`,
    buttons: [
      Dialog.cancelButton({ label: 'Keep the job' }),
      Dialog.warnButton({ label: 'Cancel the job' })
    ],
    defaultButton: 0
  });
  return answer.button.accept;
}
