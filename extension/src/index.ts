/**
 * JupyterLab plugin of benchpool: connects commands, panel, badges, status bar and notifications to
 * one model.
 */
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ILayoutRestorer } from '@jupyterlab/application';
import { ICommandPalette, Notification, showErrorMessage } from '@jupyterlab/apputils';
import { PageConfig } from '@jupyterlab/coreutils';
import { IFileBrowserFactory } from '@jupyterlab/filebrowser';
import { ILauncher } from '@jupyterlab/launcher';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStateDB } from '@jupyterlab/statedb';
import { IStatusBar } from '@jupyterlab/statusbar';
import { JobActions } from './actions';
import { Api } from './api';
import { BenchModel } from './benchModel';
import { BenchPart } from './benchPart';
import { CellBadges } from './cellBadges';
import { followRuns } from './cellRuns';
import { addCommands, CATEGORY } from './commands';
import {
  EXAMPLE,
  NOTIFICATIONS,
  OPEN_JOB,
  SEND,
  SEND_FILE,
  SEND_NOTEBOOK,
  SHOW_JOBS
} from './commandIds';
import { connect } from './connection';
import { openWithoutKernel } from './executedCopies';
import { GpuChip } from './gpuChip';
import { HintProgress, Hints, IHintMemory } from './hints';
import type { IOpeners } from './jobDetails';
import { JobsPanel, PanelState } from './jobsPanel';
import { codeOf } from './loadedCode';
import { insertLine } from './loading';
import { JobsModel } from './model';
import { Notices } from './notices';
import { Reopening } from './reopening';
import { StatusItem } from './statusItem';
import { IBenchpool, IJob } from './tokens';
import { AccessRequests } from './accessRequests';

export * from './tokens';

const PLUGIN_ID = '@benchpool/lab:plugin';
const OFFER_MS = 15_000;

const plugin: JupyterFrontEndPlugin<IBenchpool> = {
  id: PLUGIN_ID,
  description: 'Sends notebook code to the benchpool training pool and follows it.',
  autoStart: true,
  provides: IBenchpool,
  requires: [INotebookTracker],
  optional: [
    ICommandPalette,
    IFileBrowserFactory,
    ILauncher,
    ILayoutRestorer,
    ISettingRegistry,
    IStateDB,
    IStatusBar
  ],
  activate
};

export default plugin;

function activate(
  app: JupyterFrontEnd,
  tracker: INotebookTracker,
  palette: ICommandPalette | null,
  browsers: IFileBrowserFactory | null,
  launcher: ILauncher | null,
  restorer: ILayoutRestorer | null,
  settings: ISettingRegistry | null,
  state: IStateDB | null,
  statusBar: IStatusBar | null
): IBenchpool {
  const model = new JobsModel(new Api(connect(app.serviceManager.serverSettings)));
  const panelState = new PanelState();
  const showPanel = () => app.shell.activateById(panel.id);
  const showJob = (id: string) => {
    model.known(id);
    showPanel();
    panelState.show(id);
  };
  const actions = new JobActions(model, showJob);
  const accessRequests = new AccessRequests(model.api);
  const hints = new Hints(settings && hintMemory(settings));
  const sends = {
    app,
    tracker,
    browsers,
    state,
    model,
    accessRequests,
    actions,
    showPanel,
    showJob
  };
  const reopening = new Reopening(sends);
  const open = openers(app, tracker, reopening);
  const offer = new Offer(showPanel);
  const onShown = () => offer.withdraw();
  const panel = new JobsPanel({
    model,
    actions,
    open,
    state: panelState,
    hints,
    accessRequests,
    onShown
  });
  app.shell.add(panel, 'right', { rank: 400 });
  restorer?.add(panel, panel.id);

  addCommands(sends);
  openWithoutKernel(tracker);
  followRuns(tracker);
  addToPalette(palette);
  addToLauncher(launcher);
  const badges = new CellBadges(tracker, {
    model,
    commands: app.commands,
    openCommand: OPEN_JOB
  });
  const notices = new Notices({
    model,
    state,
    server: app.serviceManager.serverSettings.baseUrl,
    show: showJob,
    failure: job => open.failure(job)
  });
  const bench = new BenchModel(model.api);
  const benchPart = new BenchPart(app, bench, sends, palette);
  addStatusItem(statusBar, model, showPanel);
  addGpuChip(statusBar, new GpuChip(model, bench, serverName(), () => void benchPart.open(false)));
  void followSettings(settings, (badgesShown, noticesOn) => {
    badges.visible = badgesShown;
    notices.enabled = noticesOn;
  });
  void app.restored.then(() => {
    model.start();
    bench.start();
    accessRequests.start();
    return hints.start(() => (panel.isVisible ? undefined : offer.make()));
  });
  return model;
}

function hintMemory(registry: ISettingRegistry): IHintMemory {
  return {
    read: async () => (await registry.get(PLUGIN_ID, 'hints')).composite as HintProgress,
    write: progress => registry.set(PLUGIN_ID, 'hints', progress)
  };
}

/** Notification that offers hints to new users. It is dismissed when the panel shows them. */
class Offer {
  constructor(private readonly _showPanel: () => void) {}

  make(): void {
    this._shown = Notification.info(
      'New here? Send long runs to the training pool and keep working in your notebook.',
      {
        autoClose: OFFER_MS,
        actions: [{ label: 'Three hints', callback: this._showPanel }]
      }
    );
  }

  withdraw(): void {
    if (this._shown) {
      Notification.dismiss(this._shown);
      this._shown = null;
    }
  }

  private _shown: string | null = null;
}

/** Create the functions that open results in the document and file browser views of JupyterLab. */
function openers(app: JupyterFrontEnd, tracker: INotebookTracker, reopening: Reopening): IOpeners {
  return {
    file: path => void app.commands.execute('docmanager:open', { path }),
    folder: path => void app.commands.execute('filebrowser:open-path', { path }),
    failure: job => void reopening.open(job),
    place: (job, place) => void reopening.openPlace(job, place),
    fix: job => void reopening.fix(job),
    load: (job, line) => loadInto(app, tracker, job, line)
  };
}

function loadInto(app: JupyterFrontEnd, tracker: INotebookTracker, job: IJob, line: string): void {
  const panel = insertLine(tracker, job, line);
  if (panel) {
    app.shell.activateById(panel.id);
  } else {
    void showErrorMessage(
      job.name,
      `Open a notebook first, or run these lines in one:\n\n${codeOf(line, [])}`
    );
  }
}

function addToPalette(palette: ICommandPalette | null): void {
  for (const command of [SEND, SEND_NOTEBOOK, SHOW_JOBS, EXAMPLE, NOTIFICATIONS]) {
    palette?.addItem({ command, category: CATEGORY });
  }
  palette?.addItem({ command: SEND_FILE, category: CATEGORY, args: { palette: true } });
}

function addToLauncher(launcher: ILauncher | null): void {
  [EXAMPLE, SHOW_JOBS].forEach((command, rank) =>
    launcher?.add({ command, category: CATEGORY, rank, args: { isLauncher: true } })
  );
}

function addStatusItem(statusBar: IStatusBar | null, model: JobsModel, onOpen: () => void): void {
  statusBar?.registerStatusItem(PLUGIN_ID, {
    item: new StatusItem(model, onOpen),
    align: 'left',
    rank: 50
  });
}

function addGpuChip(statusBar: IStatusBar | null, item: GpuChip): void {
  statusBar?.registerStatusItem(`${PLUGIN_ID}:gpus`, { item, align: 'left', rank: 51 });
}

function serverName(): string {
  return PageConfig.getOption('hubServerName');
}

async function followSettings(
  registry: ISettingRegistry | null,
  apply: (badgesShown: boolean, noticesOn: boolean) => void
): Promise<void> {
  if (!registry) {
    return;
  }
  const settings = await registry.load(PLUGIN_ID);
  const read = () =>
    apply(
      settings.get('showCellBadges').composite as boolean,
      settings.get('notifyWhenEnded').composite as boolean
    );
  settings.changed.connect(read);
  read();
}
