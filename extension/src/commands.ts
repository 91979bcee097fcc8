/**
 * The commands of the front end. None of them sends or stops anything by itself: they open the
 * dialog or the panel, whatever arguments they are called with, so that a link in a notebook's
 * output can do no more.
 */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { DocumentRegistry, DocumentWidget } from '@jupyterlab/docregistry';
import type { IFileBrowserFactory } from '@jupyterlab/filebrowser';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { IStateDB } from '@jupyterlab/statedb';
import { ReadonlyJSONObject, ReadonlyPartialJSONValue, UUID } from '@lumino/coreutils';
import type { JobActions } from './actions';
import { ISubject, listCells, remember } from './draft';
import { OPEN_JOB, SEND, SEND_FILE, SEND_NOTEBOOK, SHOW_JOBS } from './commandIds';
import { age } from './format';
import { STATES } from './phrases';
import { trainIcon } from './icons';
import type { JobsModel } from './model';
import { markCell, memoryOf, rememberIn, subjectOf } from './notebookCells';
import { showSendDialog } from './sendDialog';
import { Sending } from './sending';
import type { SendKind } from './tokens';

export const CATEGORY = 'Training';
const FILE_MEMORY = '@benchpool/lab:file:';

export interface ICommandOptions {
  app: JupyterFrontEnd;
  tracker: INotebookTracker;
  browsers: IFileBrowserFactory | null;
  state: IStateDB | null;
  model: JobsModel;
  actions: JobActions;
  showPanel: () => void;
  showJob: (id: string) => void;
}

export function addCommands(options: ICommandOptions): void {
  addSendCommands(options);
  addShowCommands(options);
}

function addSendCommands(options: ICommandOptions): void {
  const { app, tracker } = options;
  const hasNotebook = () => notebookInFront(app, tracker) !== null;
  app.commands.addCommand(SEND, {
    label: args => (args.toolbar ? '' : 'Send to Training…'),
    caption: 'Send to training',
    icon: args => (args.isMenu ? undefined : trainIcon),
    isEnabled: hasNotebook,
    describedBy: { args: flags('toolbar', 'context') },
    execute: args => {
      if (args.context) {
        chooseClickedCell(options);
      }
      return sendFromNotebook(options, 'cells');
    }
  });
  app.commands.addCommand(SEND_NOTEBOOK, {
    label: 'Send Whole Notebook to Training…',
    caption: 'Send all cells of this notebook to training',
    isEnabled: hasNotebook,
    describedBy: { args: flags() },
    execute: () => sendFromNotebook(options, 'notebook')
  });
  app.commands.addCommand(SEND_FILE, {
    label: args => (args.palette ? 'Send Script to Training…' : 'Send to Training…'),
    caption: 'Send this script or notebook to training',
    icon: trainIcon,
    isEnabled: args => fileOf(options, Boolean(args.palette)) !== null,
    describedBy: { args: flags('palette') },
    execute: args => sendFile(options, Boolean(args.palette))
  });
}

function addShowCommands(options: ICommandOptions): void {
  const { commands } = options.app;
  commands.addCommand(SHOW_JOBS, {
    label: 'Show Training Jobs',
    caption: 'Show the list of training jobs',
    describedBy: { args: flags() },
    execute: () => options.showPanel()
  });
  commands.addCommand(OPEN_JOB, {
    label: args => jobLabel(options.model, args.id),
    describedBy: {
      args: {
        type: 'object',
        properties: { id: { type: 'string', description: 'Id of the job to show' } },
        required: ['id']
      }
    },
    isVisible: args => typeof args.id === 'string',
    execute: args => {
      if (typeof args.id === 'string') {
        options.showJob(args.id);
      }
    }
  });
}

function flags(...names: string[]): ReadonlyJSONObject {
  const properties = Object.fromEntries(names.map(name => [name, { type: 'boolean' }]));
  return { type: 'object', properties };
}

function jobLabel(model: JobsModel, id: ReadonlyPartialJSONValue | undefined): string {
  if (typeof id !== 'string') {
    return 'Show a Training Job';
  }
  const known = model.known(id);
  return typeof known === 'string'
    ? `${id.slice(0, 8)} (${known === 'hidden' ? 'not visible or removed' : 'asking…'})`
    : `${known.name}: ${STATES[known.state]}, sent ${age(known.submitted, Date.now())}`;
}

function notebookInFront(app: JupyterFrontEnd, tracker: INotebookTracker): NotebookPanel | null {
  const panel = tracker.currentWidget;
  return panel !== null && panel === app.shell.currentWidget ? panel : null;
}

/** A menu opened on a cell means that cell, unless it is among the selected ones. */
function chooseClickedCell({ app, tracker }: ICommandOptions): void {
  const node = app.contextMenuHitTest(one => one.classList.contains('jp-Cell'));
  const content = notebookInFront(app, tracker)?.content;
  const index = content?.widgets.findIndex(cell => cell.node === node) ?? -1;
  const cell = content?.widgets[index];
  if (content && cell && !content.isSelectedOrActive(cell)) {
    content.deselectAll();
    content.activeCellIndex = index;
  }
}

async function sendFromNotebook(options: ICommandOptions, kind: SendKind): Promise<void> {
  const panel = notebookInFront(options.app, options.tracker);
  if (!panel) {
    return;
  }
  const sending = newSending(options, subjectOf(panel), kind, memoryOf(panel));
  const job = await showSendDialog(sending, options.model);
  if (!panel.isDisposed) {
    options.app.shell.activateById(panel.id);
    panel.content.activate();
  }
  if (!job) {
    return;
  }
  options.model.acceptNew(job);
  options.actions.sent(job);
  await writeDown(panel, sending, job.id);
}

/** Keep job and answers in the notebook, and the notebook on disk, so that a reload finds them. */
async function writeDown(panel: NotebookPanel, sending: Sending, job: string): Promise<void> {
  if (panel.isDisposed) {
    return;
  }
  const chosen = listCells(sending.subject, sending.draft, sending.preparation)
    .filter(cell => cell.selected && cell.included)
    .map(cell => cell.id);
  markCell(panel, chosen, job);
  rememberIn(panel, remember(sending.draft));
  if (!panel.context.model.readOnly) {
    await panel.context.save().catch(() => undefined); // JupyterLab has said what is wrong
  }
}

async function sendFile(options: ICommandOptions, fromPalette: boolean): Promise<void> {
  const path = fileOf(options, fromPalette);
  if (path === null) {
    return;
  }
  await saveOpen(options.app, path);
  const { kernelspecs } = options.app.serviceManager;
  const subject: ISubject = { path, kernelName: kernelspecs.specs?.default ?? null, cells: null };
  const memory = await options.state?.fetch(FILE_MEMORY + path);
  const kind = path.endsWith('.ipynb') ? 'notebook' : 'script';
  const sending = newSending(options, subject, kind, memory);
  const job = await showSendDialog(sending, options.model);
  if (job) {
    options.model.acceptNew(job);
    options.actions.sent(job);
    await options.state?.save(FILE_MEMORY + path, { ...remember(sending.draft) });
  }
}

/** Save the file's open editor: what is sent is what stands on disk. */
async function saveOpen(app: JupyterFrontEnd, path: string): Promise<void> {
  for (const widget of app.shell.widgets('main')) {
    if (widget instanceof DocumentWidget && widget.context.localPath === path) {
      const context = widget.context as DocumentRegistry.Context;
      if (context.model.dirty && !context.model.readOnly) {
        await context.save();
      }
      return;
    }
  }
}

/** The script or notebook meant: the document in front, or the one chosen in the file browser. */
function fileOf(options: ICommandOptions, fromPalette: boolean): string | null {
  const front = options.app.shell.currentWidget;
  if (fromPalette) {
    const path = front instanceof DocumentWidget ? front.context.localPath : '';
    return path.endsWith('.py') ? path : null;
  }
  const browser = options.browsers?.tracker.currentWidget;
  const [item] = browser ? Array.from(browser.selectedItems()) : [];
  const contents = options.app.serviceManager.contents;
  return item ? sendable(contents.localPath(item.path)) : null;
}

function sendable(path: string): string | null {
  return /\.(py|ipynb)$/.test(path) ? path : null;
}

function newSending(
  options: ICommandOptions,
  subject: ISubject,
  kind: SendKind,
  memory: unknown
): Sending {
  return new Sending({
    api: options.model.api,
    subject,
    kind,
    memory,
    newKey: () => UUID.uuid4()
  });
}
