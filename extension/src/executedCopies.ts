/**
 * Executed copies of jobs open without starting a kernel. When the user runs a cell, JupyterLab
 * offers a kernel, as for each notebook without one.
 */
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';

/** Result folder beside the sent file (`RESULTS` in `benchpool.drafts`). */
const RESULTS = 'benchpool-results';

export function isExecutedCopy(path: string): boolean {
  return path.split('/').slice(0, -1).includes(RESULTS);
}

export function openWithoutKernel(tracker: INotebookTracker): void {
  tracker.forEach(calm);
  tracker.widgetAdded.connect((_, panel) => calm(panel));
}

/** Disable the kernel start. Runs before the notebook is loaded and its session starts. */
function calm({ context, sessionContext }: NotebookPanel): void {
  if (isExecutedCopy(context.path)) {
    sessionContext.kernelPreference = { ...sessionContext.kernelPreference, shouldStart: false };
  }
}
