/**
 * Commands of the front end. No command sends or stops a job: for all arguments, commands only open
 * the dialog or the panel. A link in the output of a notebook can do no more.
 */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { DocumentRegistry, DocumentWidget } from '@jupyterlab/docregistry';
import type { IFileBrowserFactory } from '@jupyterlab/filebrowser';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { IStateDB } from '@jupyterlab/statedb';
import { ReadonlyJSONObject, ReadonlyPartialJSONValue, UUID } from '@lumino/coreutils';
import type { JobActions } from './actions';
import { notificationsPage } from './addresses';
import { ApiError } from './api';
import { ISubject, listCells, remember } from './draft';
import {
  EXAMPLE,
  NOTIFICATIONS,
  OPEN_JOB,
  OPEN_RESULT,
  SEND,
  SEND_FILE,
  SEND_NOTEBOOK,
  SHOW_JOBS
} from './commandIds';
import { age, forToast } from './format';
import { STATES } from './phrases';
import { exampleIcon, trainIcon } from './icons';
import type { JobsModel } from './model';
import { markCell, memoryOf, rememberIn, subjectOf } from './notebookCells';
import { showSendDialog } from './sendDialog';
import { isSchedule } from './scheduleDraft';
import { confirmSchedule } from './scheduleNotice';
import { Sending } from './sending';
import type { IJob, SendKind } from './tokens';
import type { AccessRequests } from './accessRequests';

export const CATEGORY = 'Training';
const FILE_MEMORY = '@benchpool/lab:file:';

export interface ICommandOptions {
  app: JupyterFrontEnd;
  tracker: INotebookTracker;
  browsers: IFileBrowserFactory | null;
  state: IStateDB | null;
  model: JobsModel;
  accessRequests: AccessRequests;
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
    caption: 'Send the selected cells to training, with the cells that they need',
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
    label: args => (args.isLauncher ? 'Training jobs' : 'Show Training Jobs'),
    caption: 'Show the list of training jobs',
    icon: args => (args.isLauncher ? trainIcon : undefined),
    describedBy: { args: flags('isLauncher') },
    execute: () => options.showPanel()
  });
  commands.addCommand(NOTIFICATIONS, {
    label: 'Notifications of Training Jobs…',
    caption: 'Select notifications about your jobs by mail, chat or webhook, and send a test',
    isEnabled: () => notificationsPage(options.model.status) !== null,
    describedBy: { args: flags() },
    execute: () => {
      const page = notificationsPage(options.model.status);
      if (page) {
        window.open(page, '_blank', 'noopener');
      }
    }
  });
  commands.addCommand(EXAMPLE, {
    label: args => (args.isLauncher ? 'Training example' : 'Open the Training Example'),
    caption: 'Open a notebook with an example of a training that you can send',
    icon: args => (args.isLauncher ? exampleIcon : undefined),
    describedBy: { args: flags('isLauncher') },
    execute: () => openExample(options)
  });
  commands.addCommand(OPEN_JOB, {
    label: args => jobLabel(options.model, args.id),
    describedBy: { args: ofJob },
    isVisible: args => typeof args.id === 'string',
    execute: args => {
      if (typeof args.id === 'string') {
        options.showJob(args.id);
      }
    }
  });
  commands.addCommand(OPEN_RESULT, {
    label: 'Open Results of a Training Job',
    describedBy: { args: ofJob },
    isVisible: args => typeof args.id === 'string',
    execute: args => (typeof args.id === 'string' ? openResult(options, args.id) : undefined)
  });
}

const ofJob: ReadonlyJSONObject = {
  type: 'object',
  properties: { id: { type: 'string', description: 'ID of the job' } },
  required: ['id']
};

/** Open the executed notebook of a job, else its result folder. */
async function openResult({ app, model }: ICommandOptions, id: string): Promise<void> {
  try {
    const { notebook, output_dir: folder } = await model.api.result(id);
    if (notebook) {
      await app.commands.execute('docmanager:open', { path: notebook });
    } else if (folder) {
      await app.commands.execute('filebrowser:open-path', { path: folder });
    } else {
      Notification.info('This server has no results of that job.');
    }
  } catch (error) {
    Notification.error(forToast(error instanceof ApiError ? error.message : String(error)));
  }
}

async function openExample({ app, model }: ICommandOptions): Promise<void> {
  try {
    const { notebook } = await model.api.example();
    await app.commands.execute('docmanager:open', { path: notebook });
  } catch (error) {
    Notification.error(forToast(error instanceof ApiError ? error.message : String(error)));
  }
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
    ? `${id.slice(0, 8)} (${known === 'hidden' ? 'not visible or removed' : 'loading…'})`
    : `${known.name}: ${STATES[known.state]}, sent ${age(known.submitted, Date.now())}`;
}

function notebookInFront(app: JupyterFrontEnd, tracker: INotebookTracker): NotebookPanel | null {
  const panel = tracker.currentWidget;
  return panel !== null && panel === app.shell.currentWidget ? panel : null;
}

/** Select the cell on which the menu was opened, unless it is part of the selection. */
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
  await sendPanel(options, panel, subjectOf(panel), kind, memoryOf(panel));
}

/** Show the dialog and confirm what it created. Return a job, or null for a schedule or nothing. */
async function sentJob(options: ICommandOptions, sending: Sending): Promise<IJob | null> {
  const { model, accessRequests, actions } = options;
  const accepted = await showSendDialog(sending, model, accessRequests);
  if (accepted === null) {
    return null;
  }
  if (isSchedule(accepted)) {
    confirmSchedule(accepted, model);
    return null;
  }
  model.acceptNew(accepted);
  actions.sent(accepted);
  return accepted;
}

/** Open the dialog for cells of an open notebook. A sent job is stored in the notebook. */
export async function sendPanel(
  options: ICommandOptions,
  panel: NotebookPanel,
  subject: ISubject,
  kind: SendKind,
  memory: unknown
): Promise<void> {
  const sending = newSending(options, subject, kind, memory);
  const job = await sentJob(options, sending);
  if (!panel.isDisposed) {
    options.app.shell.activateById(panel.id);
    panel.content.activate();
  }
  if (!job) {
    return;
  }
  await writeDown(panel, sending, job.id);
}

/** Store job and answers in the notebook and save it, so that they survive a reload. */
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
    await panel.context.save().catch(() => undefined); // JupyterLab has reported the error
  }
}

async function sendFile(options: ICommandOptions, fromPalette: boolean): Promise<void> {
  const path = fileOf(options, fromPalette);
  if (path !== null) {
    const kind = path.endsWith('.ipynb') ? 'notebook' : 'script';
    await sendPath(options, path, kind, await options.state?.fetch(FILE_MEMORY + path));
  }
}

/** Open the dialog for a saved file. An open editor of the file is saved first. */
export async function sendPath(
  options: ICommandOptions,
  path: string,
  kind: SendKind,
  memory: unknown
): Promise<void> {
  await saveOpen(options.app, path);
  const { kernelspecs } = options.app.serviceManager;
  const kernelName = kernelspecs.specs?.default ?? null;
  const subject: ISubject = { path, kernelName, kernelId: null, cells: null };
  const sending = newSending(options, subject, kind, memory);
  const job = await sentJob(options, sending);
  if (job) {
    await options.state?.save(FILE_MEMORY + path, { ...remember(sending.draft) });
  }
}

/** Save the open editor of the file: the version on disk is sent. */
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

/** Return the current script (palette), else the file selected in the file browser. */
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
