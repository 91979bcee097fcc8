/** Access to open notebooks: cells, and benchpool data in their metadata. */
import type { Cell, IAttachmentsCellModel, ICellModel, ICodeCellModel } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { runsOf, storedRun } from './cellRuns';
import type { IMemory, ISubject } from './draft';
import type { ICellRun, ILiveCell } from './tokens';

const KEY = 'benchpool';
/** Maximum number of job IDs kept per cell, newest last. */
const KEPT_JOBS = 20;
const JOB_ID = /^[a-z0-9]{4,64}$/;

/** Return the notebook with its live cells for the dialog. */
export function subjectOf(panel: NotebookPanel): ISubject {
  const { content, context, sessionContext } = panel;
  const kernel = sessionContext.session?.kernel ?? null;
  return {
    path: context.localPath,
    kernelName: kernel?.name ?? sessionContext.kernelPreference.name ?? null,
    kernelId: kernel?.id ?? null,
    metadata: metadataOf(panel),
    deletedRuns: runsOf(panel).gone(content.widgets.map(cell => cell.model.id)),
    cells: content.widgets.map(cell => ({
      id: cell.model.id,
      cell_type: cell.model.type,
      source: cell.model.sharedModel.getSource(),
      execution_count: executionCount(cell.model),
      selected: content.isSelectedOrActive(cell),
      tags: tagsOf(cell.model),
      attachments: attachmentsOf(cell.model),
      metadata: cell.model.metadata as ILiveCell['metadata'],
      runs: cellRuns(panel, cell.model)
    }))
  };
}

/** Return the notebook metadata without widget states, which jobs do not use. */
function metadataOf(panel: NotebookPanel): ISubject['metadata'] {
  const all = Object.entries(panel.content.model?.metadata ?? {});
  return Object.fromEntries(all.filter(([name]) => name !== 'widgets')) as ISubject['metadata'];
}

/** Return the recorded runs of a cell, else the last run stored in the notebook. */
function cellRuns(panel: NotebookPanel, model: ICellModel): ICellRun[] {
  const runs = runsOf(panel).of(model.id, model.sharedModel.getSource());
  if (runs.length > 0 || model.type !== 'code') {
    return runs;
  }
  const { executionCount: number, isDirty, outputs } = model as ICodeCellModel;
  const failed = outputs.toJSON().some(output => output.output_type === 'error');
  const stored = storedRun(model.getMetadata('execution'), { number, failed, edited: isDirty });
  return stored === null ? [] : [stored];
}

/** Return the number of the last run of a code cell, or null. */
export function executionCount(model: ICellModel): number | null {
  return model.type === 'code' ? (model as ICodeCellModel).executionCount : null;
}

function tagsOf(model: ICellModel): string[] {
  const tags: unknown = model.getMetadata('tags');
  return Array.isArray(tags) ? tags.filter((tag): tag is string => typeof tag === 'string') : [];
}

function attachmentsOf(model: ICellModel): ILiveCell['attachments'] {
  const { attachments } = model as Partial<IAttachmentsCellModel>;
  return (attachments?.toJSON() ?? {}) as ILiveCell['attachments'];
}

/** Return the remembered answers of a notebook, unchecked. */
export function memoryOf(panel: NotebookPanel): unknown {
  return record(panel.content.model?.getMetadata(KEY)).send;
}

export function rememberIn(panel: NotebookPanel, memory: IMemory): void {
  const model = panel.content.model;
  if (model && !model.readOnly) {
    model.setMetadata(KEY, { ...record(model.getMetadata(KEY)), send: memory });
  }
}

/** Return the IDs of the jobs that a cell was sent with, newest last. */
export function jobsOf(model: ICellModel): string[] {
  const jobs = record(model.getMetadata(KEY)).jobs;
  return Array.isArray(jobs)
    ? jobs.filter((id): id is string => typeof id === 'string' && JOB_ID.test(id))
    : [];
}

/** Store a job ID in the cell that shows its badge: the last selected cell. */
export function markCell(panel: NotebookPanel, chosen: readonly string[], job: string): void {
  const last = panel.content.widgets
    .filter(cell => cell.model.type === 'code' && chosen.includes(cell.model.id))
    .pop();
  if (last) {
    addJob(last, job);
  }
}

function addJob(cell: Cell, job: string): void {
  const old = record(cell.model.getMetadata(KEY));
  const jobs = [...jobsOf(cell.model).filter(id => id !== job), job].slice(-KEPT_JOBS);
  cell.model.setMetadata(KEY, { ...old, jobs });
}

function record(value: unknown): Record<string, unknown> {
  return value && typeof value === 'object' && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : {};
}
