/** List of cells in the send dialog: tick, duration of the last run, and reason for inclusion. */
import * as React from 'react';
import type { IListedCell } from './draft';
import { duration } from './phrases';
import { Prose } from './prose';

export interface ICellListProps {
  cells: readonly IListedCell[];
  onToggle: (id: string, on: boolean) => void;
}

export function CellList({ cells, onToggle }: ICellListProps): React.JSX.Element {
  return (
    <ul className="bp-CellList" data-testid="benchpool-cell-list">
      {cells.map(cell => (
        <CellItem key={cell.id} cell={cell} onToggle={on => onToggle(cell.id, on)} />
      ))}
    </ul>
  );
}

function CellItem(props: {
  cell: IListedCell;
  onToggle: (on: boolean) => void;
}): React.JSX.Element {
  const { cell } = props;
  return (
    <li className="bp-CellList-item">
      <label title={cell.without.replace(/`/g, '')}>
        <input
          type="checkbox"
          checked={cell.included}
          aria-description={cell.without.replace(/`/g, '') || undefined}
          onChange={event => props.onToggle(event.target.checked)}
        />
        <span className="bp-CellList-number">{cell.number}</span>
        <code className="bp-CellList-code">{cell.firstLine}</code>
        <span className={`bp-CellList-took${hasFailed(cell) ? ' bp-mod-failed' : ''}`}>
          {tookText(cell)}
        </span>
        <span className="bp-CellList-why">
          <Prose text={cell.why} />
        </span>
      </label>
    </li>
  );
}

/** Return the duration of the last run of a cell, `failed`, or an empty string without a run. */
export function tookText(cell: IListedCell): string {
  const last = cell.lastRun;
  if (last === null) {
    return '';
  }
  if (hasFailed(cell)) {
    return 'failed';
  }
  if (last.seconds === null) {
    return 'runs';
  }
  return last.seconds < 1 ? '< 1 s' : duration(last.seconds);
}

function hasFailed(cell: IListedCell): boolean {
  return cell.lastRun !== null && cell.lastRun.failed && !cell.lastRun.edited;
}

/** Reason why the kernel was not queried, or null. */
export function KernelNote({ text }: { text: string }): React.JSX.Element | null {
  return text === '' ? null : (
    <p className="bp-Form-note" data-testid="benchpool-kernel-note">
      {text}
    </p>
  );
}
