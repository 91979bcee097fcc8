/**
 * The line above the list of jobs: search, states, and clearing away what has ended.
 */
import * as React from 'react';
import { EVERYTHING, INarrowing, STATE_CHOICES, StateChoice } from './narrowing';

/** Where it is kept until when ended jobs were cleared away, for this browser. */
const CLEARED = 'benchpool:cleared-at';

/** What the list is narrowed to; clearing survives a reload, the rest does not. */
export function useNarrowing(): [INarrowing, (by: Partial<INarrowing>) => void] {
  const [narrowing, set] = React.useState<INarrowing>(() => ({
    ...EVERYTHING,
    clearedAt: Number(localStorage.getItem(CLEARED)) || 0
  }));
  const change = React.useCallback((by: Partial<INarrowing>) => {
    if (by.clearedAt !== undefined) {
      localStorage.setItem(CLEARED, String(by.clearedAt));
    }
    set(before => ({ ...before, ...by }));
  }, []);
  return [narrowing, change];
}

export interface IListToolsProps {
  narrowing: INarrowing;
  change: (by: Partial<INarrowing>) => void;
  /** How many shown jobs have ended, and how many were cleared away. */
  ended: number;
  cleared: number;
  /** Labels that jobs here have, and the one that is chosen; empty for all. */
  labels: readonly string[];
  label: string;
  onLabel: (label: string) => void;
}

export function ListTools(props: IListToolsProps): React.JSX.Element {
  const { narrowing, change, ended, cleared } = props;
  return (
    <div className="bp-Tools" role="search">
      <input
        type="search"
        className="jp-mod-styled bp-Tools-search"
        data-testid="benchpool-search"
        aria-label="Search jobs by name, id, user, project or label"
        placeholder="Search jobs"
        value={narrowing.search}
        onChange={event => change({ search: event.target.value })}
      />
      <select
        className="jp-mod-styled bp-Tools-choice"
        data-testid="benchpool-states"
        aria-label="Only jobs in these states"
        value={narrowing.states}
        onChange={event => change({ states: event.target.value as StateChoice })}
      >
        {Object.entries(STATE_CHOICES).map(([choice, words]) => (
          <option key={choice} value={choice}>
            {words}
          </option>
        ))}
      </select>
      <LabelChoice {...props} />
      {ended > 0 && (
        <button
          type="button"
          className="bp-Link"
          title="Takes ended jobs out of this list; they stay on the pool's page."
          onClick={() => change({ clearedAt: Date.now() })}
        >
          Clear ended
        </button>
      )}
      {cleared > 0 && (
        <button type="button" className="bp-Link" onClick={() => change({ clearedAt: 0 })}>
          {`Show ${cleared} cleared`}
        </button>
      )}
    </div>
  );
}

/** Narrows the list to jobs with one label; not there while no job has one. */
function LabelChoice(props: IListToolsProps): React.JSX.Element | null {
  const { labels, label, onLabel } = props;
  return labels.length > 0 ? (
    <select
      className="jp-mod-styled bp-Tools-choice"
      data-testid="benchpool-labels"
      aria-label="Only jobs with a label"
      value={label}
      onChange={event => onLabel(event.target.value)}
    >
      <option value="">all labels</option>
      {labels.map(each => (
        <option key={each} value={each}>
          {each}
        </option>
      ))}
    </select>
  ) : null;
}
