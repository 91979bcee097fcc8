/**
 * From a failed job back to its code: opens the cell or line, and offers to send the job again with
 * the same answers.
 */
import { Notification, showErrorMessage } from '@jupyterlab/apputils';
import type { IDocumentWidget } from '@jupyterlab/docregistry';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { ICommandOptions, sendPath, sendPanel } from './commands';
import { chosenAgain, failedAt, memoryOf, placeOf, toCorrect } from './failing';
import { forToast } from './format';
import type { ILogLine } from './logPlaces';
import { subjectOf } from './notebookCells';
import type { IJob, ISent } from './tokens';

/** Parts of a text editor that cells and files share. */
interface IEditor {
  focus(): void;
  setCursorPosition(position: { line: number; column: number }): void;
  revealPosition(position: { line: number; column: number }): void;
}

export class Reopening {
  constructor(private readonly _options: ICommandOptions) {}

  /** Open the place of a failure. A missing place is reported. */
  async open(job: IJob): Promise<ISent | null> {
    try {
      const sent = await this._options.model.api.sent(job.id);
      if (sent.path === null) {
        throw new Error(
          'The source file is not on this server or was moved. The sent code is below “Sent code”.'
        );
      }
      await this._show(sent, sent.path, failedAt(job)?.cell ?? null);
      return sent;
    } catch (error) {
      await showErrorMessage(job.name, (error as Error).message);
      return null;
    }
  }

  /** Open a place from the log. A missing place is reported. */
  async openPlace(job: IJob, { cell, file, line }: ILogLine): Promise<void> {
    try {
      const sent = await this._options.model.api.sent(job.id, file);
      const path = file === null ? sent.origin : sent.path;
      if (path === null) {
        throw new Error(
          file === null
            ? 'The source notebook is not on this server or was moved.'
            : `${file} is not in the folder that the job was sent from.`
        );
      }
      const id = sent.cells.find(each => each.number === cell)?.id ?? null;
      await this._show({ ...sent, cell: id, line }, path, cell);
    } catch (error) {
      await showErrorMessage(job.name, (error as Error).message);
    }
  }

  /** Open the place of a failure and offer to send the job again with the same answers. */
  async fix(job: IJob): Promise<void> {
    const at = failedAt(job);
    const sent = await this.open(job);
    if (at === null || sent === null) {
      return;
    }
    if (sent.send === null) {
      // The code itself sent the job: `%%train` or a function call.
      Notification.warning(
        forToast(`Correct ${toCorrect(at)}, then run the code that sent it again.`)
      );
      return;
    }
    Notification.warning(forToast(`Correct ${toCorrect(at)}, then send “${job.name}” again.`), {
      autoClose: false,
      actions: [
        {
          label: 'Send again…',
          caption: `Send ${job.name} again with the same options`,
          callback: () => void this._sendAgain(job, sent)
        }
      ]
    });
  }

  private async _sendAgain(job: IJob, sent: ISent): Promise<void> {
    try {
      const memory = memoryOf(await this._options.model.api.submission(job.id));
      if (sent.send === null || sent.origin === null) {
        throw new Error(
          'The job was not sent from a file of this server. Send it again from its source.'
        );
      }
      if (sent.send === 'script') {
        await sendPath(this._options, sent.origin, 'script', memory);
        return;
      }
      const panel = (await this._document(sent.origin)) as NotebookPanel;
      const subject = subjectOf(panel);
      const again = sent.send === 'cells' ? chosenAgain(subject, sent) : subject;
      await sendPanel(this._options, panel, again, sent.send, memory);
    } catch (error) {
      await showErrorMessage(job.name, (error as Error).message);
    }
  }

  private async _document(path: string): Promise<IDocumentWidget> {
    const { commands } = this._options.app;
    const widget = (await commands.execute('docmanager:open', { path })) as IDocumentWidget;
    await widget.context.ready;
    await widget.revealed;
    return widget;
  }

  private async _show(sent: ISent, path: string, cell: number | null): Promise<void> {
    const widget = await this._document(path);
    const line = sent.line ?? 1;
    if (this._options.tracker.has(widget)) {
      await showCell(widget as NotebookPanel, sent, cell);
      return;
    }
    const { editor } = widget.content as unknown as { editor?: IEditor };
    if (editor) {
      place(editor, line);
    }
  }
}

/** Scroll to a cell and edit it with the cursor in its line. `number`: for the message. */
async function showCell(panel: NotebookPanel, sent: ISent, number: number | null): Promise<void> {
  const { content } = panel;
  const cells = content.widgets.map(({ model }) => ({
    id: model.id,
    source: model.sharedModel.source,
    count: 'executionCount' in model ? (model.executionCount as number | null) : null
  }));
  const index = placeOf(sent, cells);
  if (index < 0) {
    throw new Error(
      `Cell ${number ?? ''} is no longer in the notebook. The sent code is below “Sent code”.`
    );
  }
  content.deselectAll();
  content.activeCellIndex = index;
  content.mode = 'edit';
  await content.scrollToItem(index);
  const cell = content.widgets[index]!;
  await cell.ready;
  if (cell.editor) {
    place(cell.editor, sent.line ?? 1);
  }
}

function place(editor: IEditor, line: number): void {
  const position = { line: Math.max(0, line - 1), column: 0 };
  editor.setCursorPosition(position);
  editor.revealPosition(position);
  editor.focus();
}
