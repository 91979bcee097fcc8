/**
 * Bench items of JupyterLab: the dialog that opens when an answer is needed, the command that opens
 * it at any time, and the notification after the GPUs were reclaimed.
 */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ICommandPalette } from '@jupyterlab/apputils';
import { Notification } from '@jupyterlab/apputils';
import { PageConfig, PathExt, URLExt } from '@jupyterlab/coreutils';
import { showBenchDialog } from './benchDialog';
import type { IBenchPlaces } from './benchDialog';
import type { BenchModel } from './benchModel';
import { inShort, needsAnswer } from './benchWords';
import { CATEGORY, sendPanel } from './commands';
import type { ICommandOptions } from './commands';
import { BENCH } from './commandIds';
import { forToast } from './format';
import { memoryOf, subjectOf } from './notebookCells';

export class BenchPart {
  constructor(
    private readonly _app: JupyterFrontEnd,
    private readonly _model: BenchModel,
    sends: ICommandOptions,
    palette: ICommandPalette | null
  ) {
    this._places = placesOf(sends);
    _app.commands.addCommand(BENCH, {
      label: 'GPU of This Server: Keep or Release…',
      caption: 'Keep or release the GPU of this server',
      isEnabled: () => Boolean(_model.now?.idleness ?? _model.now?.given_back),
      describedBy: { args: { type: 'object', properties: {} } },
      execute: () => this.open(false)
    });
    palette?.addItem({ command: BENCH, category: CATEGORY });
    _model.changed.connect(() => this._look());
  }

  /** Open the dialog unless it is open. `alone`: it opens without a user action. */
  async open(alone: boolean): Promise<void> {
    if (!this._isOpen) {
      this._isOpen = true;
      await showBenchDialog(this._model, this._places, alone);
      this._isOpen = false;
    }
  }

  private _look(): void {
    const now = this._model.now;
    if (now === null) {
      return; // short outage: keep the state
    }
    this._app.commands.notifyCommandChanged(BENCH);
    const asks = needsAnswer(now);
    if (asks && !this._wasAsked && !document.hidden) {
      this._wasAsked = true;
      void this.open(true);
    } else if (!asks) {
      this._wasAsked = false; // a new idle period opens the dialog again
    }
    if (now.given_back?.done && !this._wasNotified) {
      this._wasNotified = true;
      this._notify(inShort(now.given_back));
    }
  }

  private _notify(text: string): void {
    Notification.info(forToast(text), {
      autoClose: false,
      actions: [{ label: 'More…', callback: () => void this.open(false) }]
    });
  }

  private readonly _places: IBenchPlaces;
  private _isOpen = false;
  private _wasAsked = false;
  private _wasNotified = false;
}

function placesOf(sends: ICommandOptions): IBenchPlaces {
  const prefix = PageConfig.getOption('hubPrefix');
  return {
    notebook: () => {
      const path = sends.tracker.currentWidget?.context.path;
      return path === undefined ? null : PathExt.basename(path);
    },
    send: () => {
      const panel = sends.tracker.currentWidget;
      if (panel) {
        void sendPanel(sends, panel, subjectOf(panel), 'cells', memoryOf(panel));
      }
    },
    hub: prefix && PageConfig.getOption('hubHost') + URLExt.join(prefix, 'home')
  };
}
