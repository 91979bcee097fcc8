/** Differences between a run and the previous run, folded below its row. */
import * as React from 'react';
import type { Api } from './api';
import { useAnswer } from './hooks';
import { changeLine, unrecordedNote } from './runChangesWords';
import { DifferenceLines } from './sentCode';
import type { IJob, IRunChanges } from './tokens';

interface IChangesProps {
  job: IJob;
  api: Api;
}

export function RunChangesFold(props: IChangesProps): React.JSX.Element {
  const [isOpen, setOpen] = React.useState(false);
  return (
    <details
      className="bp-Fold bp-Sent"
      data-testid="benchpool-run-changes"
      onToggle={event => setOpen(event.currentTarget.open)}
    >
      <summary>Changes since the previous run</summary>
      {isOpen && <RunChanges {...props} />}
    </details>
  );
}

function RunChanges({ job, api }: IChangesProps): React.JSX.Element {
  // A run records its environment when it starts.
  const asked = `${job.id}/${job.state}/${job.attempt}`;
  const { value, error } = useAnswer<IRunChanges>(asked, () => api.changes(job.id));
  if (error || !value) {
    return <p className="bp-Detail-quiet">{error || 'Loading…'}</p>;
  }
  if (value.before === null) {
    return <p className="bp-Detail-quiet">There is no earlier run of this name.</p>;
  }
  const note = unrecordedNote(value);
  return (
    <>
      <p className="bp-Detail-quiet">Compared with {value.before.slice(0, 8)}:</p>
      {value.changes.length > 0 && (
        <ul className="bp-Files">
          {value.changes.map(change => (
            <li key={`${change.area}/${change.name}`}>{changeLine(change)}</li>
          ))}
        </ul>
      )}
      {value.changes.length === 0 && !note && <p>Options and environment are the same.</p>}
      {note && <p className="bp-Detail-quiet">{note}</p>}
      {value.code.length > 0 && <DifferenceLines lines={value.code} />}
      {value.note && <p className="bp-Detail-quiet">{value.note}</p>}
    </>
  );
}
