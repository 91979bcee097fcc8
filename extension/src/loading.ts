/**
 * Values of a job in a notebook: the code that loads a value is inserted in a new cell below the
 * cell that sent the job.
 */
import { INotebookTracker, NotebookActions, NotebookPanel } from '@jupyterlab/notebook';
import { isExecutedCopy } from './executedCopies';
import { codeOf, ICellAbove } from './loadedCode';
import { executionCount, jobsOf } from './notebookCells';
import type { IJob } from './tokens';

/**
 * Insert a line below the cell with the job's badge, else below the active cell. An import of
 * benchpool is added where it is missing. Return the notebook, or null if none can be edited.
 */
export function insertLine(
  tracker: INotebookTracker,
  job: IJob,
  line: string
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
  const above = cellsAbove(panel);
  content.deselectAll();
  NotebookActions.insertBelow(content);
  content.activeCell?.model.sharedModel.setSource(codeOf(line, above));
  void content.scrollToItem(content.activeCellIndex);
  return panel;
}

/** Return the active code cell and those above it. */
function cellsAbove({ content }: NotebookPanel): ICellAbove[] {
  return content.widgets
    .slice(0, content.activeCellIndex + 1)
    .filter(({ model }) => model.type === 'code')
    .map(({ model }) => ({
      source: model.sharedModel.getSource(),
      ran: executionCount(model) !== null
    }));
}

function indexOf(panel: NotebookPanel, job: IJob): number {
  return panel.content.widgets.findIndex(cell => jobsOf(cell.model).includes(job.id));
}
