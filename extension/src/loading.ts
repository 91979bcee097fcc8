/**
 * Values of a job in a notebook: the lines that read one go into a new cell below the one that sent
 * the job.
 */
import { INotebookTracker, NotebookActions, NotebookPanel } from '@jupyterlab/notebook';
import { isExecutedCopy } from './executedCopies';
import { jobsOf } from './notebookCells';
import type { IJob } from './tokens';

/** Put lines below the cell that carries the job's badge, else below the chosen cell; say where. */
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
