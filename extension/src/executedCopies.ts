/**
 * What a job has run is there to be read: opening it starts no kernel. Whoever runs a cell of it is
 * asked for one, as JupyterLab does for any notebook without.
 */
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';

/** The folder of results beside what was sent (`RESULTS` in `benchpool.drafts`). */
const RESULTS = 'benchpool-results';

export function isExecutedCopy(path: string): boolean {
  return path.split('/').slice(0, -1).includes(RESULTS);
}

export function openWithoutKernel(tracker: INotebookTracker): void {
  tracker.forEach(calm);
  tracker.widgetAdded.connect((_, panel) => calm(panel));
}

/** Comes before the notebook is read, and so before its session begins. */
function calm({ context, sessionContext }: NotebookPanel): void {
  if (isExecutedCopy(context.path)) {
    sessionContext.kernelPreference = { ...sessionContext.kernelPreference, shouldStart: false };
  }
}
