/**
 * Badges on sent cells: state, progress and age of the newest job, with a menu of earlier jobs. The
 * job IDs are in the cell metadata, so badges survive a reload and the end of the kernel.
 */
import type { Cell } from '@jupyterlab/cells';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { ReactWidget } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import { Menu, PanelLayout } from '@lumino/widgets';
import * as React from 'react';
import { age, isTerminal } from './format';
import { percent, STATES } from './phrases';
import { useChanged, useNow } from './hooks';
import type { JobsModel, Known } from './model';
import { jobsOf } from './notebookCells';
import { PauseNote } from './pauseNote';
import { StateMark } from './stateMark';

export interface IBadgeOptions {
  model: JobsModel;
  commands: CommandRegistry;
  /** ID of the command that opens job `args.id` in the panel. */
  openCommand: string;
}

/** Badges on the sent cells of all open notebooks. */
export class CellBadges {
  constructor(
    tracker: INotebookTracker,
    private readonly _options: IBadgeOptions
  ) {
    tracker.forEach(panel => this._watch(panel));
    tracker.widgetAdded.connect((_, panel) => this._watch(panel), this);
  }

  /** Show or hide all badges. */
  set visible(visible: boolean) {
    document.body.classList.toggle('bp-mod-noBadges', !visible);
  }

  private _watch(panel: NotebookPanel): void {
    void panel.context.ready.then(() => {
      this._sync(panel);
      panel.content.model?.cells.changed.connect(() => this._sync(panel), this);
      panel.content.modelChanged.connect(() => this._sync(panel), this);
      panel.content.cellInViewportChanged.connect((_, cell) => this._dress(cell), this);
    });
  }

  private _sync(panel: NotebookPanel): void {
    // The widgets of new cells exist only after the signal of the model has been handled.
    requestAnimationFrame(() => {
      if (!panel.isDisposed) {
        panel.content.widgets.forEach(cell => this._dress(cell));
      }
    });
  }

  private _dress(cell: Cell): void {
    if (!this._seen.has(cell)) {
      this._seen.add(cell);
      cell.model.metadataChanged.connect(() => this._dress(cell), this);
    }
    if (jobsOf(cell.model).length > 0 && !this._badges.has(cell)) {
      void cell.ready.then(() => this._attach(cell));
    } else {
      this._badges.get(cell)?.update();
    }
  }

  private _attach(cell: Cell): void {
    if (cell.isDisposed || this._badges.has(cell) || !(cell.layout instanceof PanelLayout)) {
      return;
    }
    const badge = new CellBadge(cell, this._options);
    const input = cell.layout.widgets.findIndex(part => part.hasClass('jp-Cell-inputWrapper'));
    cell.layout.insertWidget(input + 1, badge);
    this._badges.set(cell, badge);
  }

  private readonly _seen = new WeakSet<Cell>();
  private readonly _badges = new WeakMap<Cell, CellBadge>();
}

class CellBadge extends ReactWidget {
  constructor(
    private readonly _cell: Cell,
    private readonly _options: IBadgeOptions
  ) {
    super();
    this.addClass('bp-CellBadge');
  }

  protected override render(): React.JSX.Element | null {
    const ids = jobsOf(this._cell.model);
    return ids.length ? <Badge ids={ids} {...this._options} /> : null;
  }
}

function Badge(props: IBadgeOptions & { ids: readonly string[] }): React.JSX.Element {
  const { ids, model, commands, openCommand } = props;
  useChanged(model);
  const now = useNow(10_000);
  const newest = ids[ids.length - 1]!;
  const known = model.known(newest);
  return (
    <div className="bp-Badges">
      <button
        type="button"
        className="bp-Badge"
        data-testid="benchpool-badge"
        data-badge-job={newest}
        data-state={typeof known === 'string' ? known : known.state}
        aria-label={badgeLabel(known)}
        title={badgeLabel(known)}
        onClick={() => void commands.execute(openCommand, { id: newest })}
      >
        <BadgeText known={known} now={now} />
      </button>
      {ids.length > 1 && <History {...props} />}
    </div>
  );
}

function BadgeText({ known, now }: { known: Known; now: number }): React.JSX.Element {
  if (known === 'loading') {
    return <span className="bp-Badge-quiet">training job…</span>;
  }
  if (known === 'hidden') {
    return <span className="bp-Badge-quiet">training job not visible</span>;
  }
  const fraction = known.progress?.fraction ?? null;
  const done = isTerminal(known.state);
  return (
    <>
      <StateMark state={known.state} />
      {!done && fraction !== null && <span>{percent(fraction)}</span>}
      <PauseNote pause={known.pause} />
      <span className="bp-Badge-quiet">
        {age(done && known.ended ? known.ended : known.submitted, now)}
      </span>
    </>
  );
}

function badgeLabel(known: Known): string {
  if (known === 'loading') {
    return 'Training job of this cell';
  }
  if (known === 'hidden') {
    return 'The training job of this cell is not visible to you, or was removed';
  }
  const pause = known.pause ? `, ${known.pause.text}` : '';
  return `Training job ${known.name}: ${STATES[known.state]}${pause}. Open it`;
}

function History(props: IBadgeOptions & { ids: readonly string[] }): React.JSX.Element {
  const earlier = props.ids.length - 1;
  const label = earlier === 1 ? '1 earlier send' : `${earlier} earlier sends`;
  const openMenu = (event: React.MouseEvent<HTMLButtonElement>) => {
    const box = event.currentTarget.getBoundingClientRect();
    const menu = new Menu({ commands: props.commands });
    for (const id of [...props.ids].reverse()) {
      menu.addItem({ command: props.openCommand, args: { id } });
    }
    menu.aboutToClose.connect(() => void Promise.resolve().then(() => menu.dispose()));
    menu.open(box.left, box.bottom);
  };
  return (
    <button
      type="button"
      className="bp-Badge bp-Badge-history"
      data-testid="benchpool-badge-history"
      aria-haspopup="menu"
      aria-label={label}
      title={label}
      onClick={openMenu}
    >
      +{earlier}
    </button>
  );
}
