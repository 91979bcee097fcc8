/**
 * Log of cell runs in the kernel of a notebook: cells, durations and failures. Sources: the messages
 * between page and kernel, else the times and outputs that the notebook stores.
 */
import type { ISessionContext } from '@jupyterlab/apputils';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { Kernel, KernelMessage, Session } from '@jupyterlab/services';
import type { ICellRun } from './tokens';

/** Maximum number of runs kept per cell, newest last. */
const KEPT = 20;

interface IOpenRun {
  cell: string;
  source: string;
  number: number | null;
  began: number;
}

/** Runs of one kernel, recorded from its messages. */
export class RunLog {
  /** Record a message to or from the kernel. */
  record(msg: KernelMessage.IMessage): void {
    const type = msg.header.msg_type as string;
    const parent = (msg.parent_header as { msg_id?: string }).msg_id ?? '';
    const open = this._open.get(parent);
    if (type === 'execute_request') {
      const cell = (msg.metadata as { cellId?: unknown }).cellId;
      if (typeof cell === 'string') {
        const began = secondsOf(msg.header.date) ?? Date.now() / 1000;
        const source = (msg.content as { code?: string }).code ?? '';
        this._open.set(msg.header.msg_id, { cell, source, number: null, began });
      }
    } else if (type === 'execute_input' && open) {
      open.began = secondsOf(msg.header.date) ?? open.began;
      open.number = (msg.content as KernelMessage.IExecuteInputMsg['content']).execution_count;
    } else if (type === 'execute_reply' && open) {
      this._open.delete(parent);
      this._ended(open, msg as KernelMessage.IExecuteReplyMsg);
    } else if (type === 'status' && isRestart(msg)) {
      this.clear();
    }
  }

  /** Remove all runs after a kernel restart. */
  clear(): void {
    this._open.clear();
    this._runs.clear();
  }

  /** Return the runs of a cell, oldest first. `source`: its current text, to mark edited runs. */
  of(cell: string, source: string): ICellRun[] {
    const now = [...this._open.values()]
      .filter(open => open.cell === cell && open.number !== null)
      .map(open => ({ ...partOf(open), seconds: null, failed: false }));
    return [...(this._runs.get(cell) ?? []), ...now].map(({ source: then, ...run }) => ({
      ...run,
      edited: then.trim() !== source.trim()
    }));
  }

  /** Return the execution counts of runs whose cells are not in `cells`. */
  gone(cells: readonly string[]): number[] {
    return [...this._runs]
      .filter(([cell]) => !cells.includes(cell))
      .flatMap(([, runs]) => runs.map(run => run.number))
      .filter(number => number !== null);
  }

  private _ended(open: IOpenRun, reply: KernelMessage.IExecuteReplyMsg): void {
    if (reply.content.status === 'abort' || (reply.content.status as string) === 'aborted') {
      return; // an earlier cell failed, so this cell did not run
    }
    const ended = secondsOf(reply.header.date);
    const run = {
      ...partOf(open),
      seconds: ended === null ? null : Math.max(0, ended - open.began),
      failed: reply.content.status === 'error'
    };
    this._runs.set(open.cell, [...(this._runs.get(open.cell) ?? []), run].slice(-KEPT));
  }

  private readonly _open = new Map<string, IOpenRun>();
  private readonly _runs = new Map<string, IRecordedRun[]>();
}

/** A run with the text that it executed. */
type IRecordedRun = Omit<ICellRun, 'edited'> & { source: string };

function partOf(open: IOpenRun): Pick<IRecordedRun, 'number' | 'source'> {
  return { number: open.number, source: open.source };
}

function isRestart(msg: KernelMessage.IMessage): boolean {
  const state = (msg.content as { execution_state?: string }).execution_state;
  return state === 'restarting' || state === 'starting';
}

/** Return a message date in seconds since 1970, or null if it is invalid. */
export function secondsOf(date: unknown): number | null {
  const ms = typeof date === 'string' ? Date.parse(date) : NaN;
  return Number.isNaN(ms) ? null : ms / 1000;
}

/**
 * Return the last run that the notebook stores of a cell, or null. Its duration is known if
 * JupyterLab recorded it (*Record timing*). `failed`: its outputs contain an error.
 */
export function storedRun(
  timing: unknown,
  run: Pick<ICellRun, 'number' | 'failed' | 'edited'>
): ICellRun | null {
  const times = (timing && typeof timing === 'object' ? timing : {}) as Record<string, unknown>;
  const began = secondsOf(times['iopub.execute_input']);
  const ended = secondsOf(times['shell.execute_reply']);
  const seconds = began === null || ended === null ? null : Math.max(0, ended - began);
  return seconds === null && !run.failed ? null : { ...run, seconds };
}

const logs = new WeakMap<NotebookPanel, RunLog>();

/** Follow the kernels of all open and future notebooks. */
export function followRuns(tracker: INotebookTracker): void {
  tracker.forEach(follow);
  tracker.widgetAdded.connect((_, panel) => follow(panel));
}

/** Return the log of a notebook. It is empty without recorded messages. */
export function runsOf(panel: NotebookPanel): RunLog {
  return logs.get(panel) ?? new RunLog();
}

function follow(panel: NotebookPanel): void {
  const log = new RunLog();
  logs.set(panel, log);
  const record = (_: unknown, { msg }: Kernel.IAnyMessageArgs) => log.record(msg);
  const listen = (session: Session.ISessionConnection | null) =>
    void session?.anyMessage.connect(record);
  const context: ISessionContext = panel.sessionContext;
  listen(context.session);
  context.sessionChanged.connect((_, change) => {
    change.oldValue?.anyMessage.disconnect(record);
    listen(change.newValue ?? null);
  });
  context.kernelChanged.connect((_, change) => {
    if (change.oldValue && change.oldValue.id !== change.newValue?.id) {
      log.clear();
    }
  });
}
