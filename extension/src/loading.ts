/**
 * Values of a job in a notebook: the lines that load a value are inserted in a new cell below the
 * cell that sent the job.
 */
import { INotebookTracker, NotebookActions, NotebookPanel } from '@jupyterlab/notebook';
import { isExecutedCopy } from './executedCopies';
import { jobsOf } from './notebookCells';
import type { IJob } from './tokens';

/**
 * Insert lines below the cell with the job's badge, else below the active cell. Return the
 * notebook, or null if none can be edited.
 */
export function insertLines(
  tracker: INotebookTracker,
  job: IJob,
  lines: string
): NotebookPanel | null {
  const sender = tracker.find(panel => indexOf(panel, job) >= 0);
  const panel = sender ?? tracker.currentWidget;
  if (!panel || panel.content.model?.readOnly || isExecutedCopy(panel.context.path)) {
    return null;
  }
  const { content } = panel;
  if (sender) {
    content.activeCellIndex = indexOf(panel, job);
  }
  content.deselectAll();
  NotebookActions.insertBelow(content);
  content.activeCell?.model.sharedModel.setSource(lines);
  void content.scrollToItem(content.activeCellIndex);
  return panel;
}

function indexOf(panel: NotebookPanel, job: IJob): number {
  return panel.content.widgets.findIndex(cell => jobsOf(cell.model).includes(job.id));
}
