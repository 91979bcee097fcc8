/** Toolbar above the list of jobs: search, states, labels, and clearing of ended jobs. */
import * as React from 'react';
import { EVERYTHING, INarrowing, STATE_CHOICES, StateChoice } from './narrowing';

/** Storage key of the time up to which ended jobs are cleared, in this browser. */
const CLEARED = 'benchpool:cleared-at';

/** Return the filter of the list and its setter. Only the clearing survives a reload. */
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
  /** Number of shown jobs that have ended. `cleared`: number of cleared jobs. */
  ended: number;
  cleared: number;
  /** Labels of the jobs. `label`: the selected label, or an empty string for all. */
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
        aria-label="Search jobs by name, ID, user, project or label"
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
          title="Hides ended jobs in this list. They stay on the pool's page."
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

/** Filter for jobs with one label. It is hidden if no job has a label. */
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
