/** Row “After” of the send dialog: the user's jobs that have not ended, as predecessors. */
import * as React from 'react';
import { mayRunAfter } from './after';
import { faultOf, Row } from './sendFields';
import type { Sending } from './sending';
import type { IJob } from './tokens';

/** Maximum number of offered jobs. Further jobs can be named in a terminal. */
const MOST = 20;

interface IAfterProps {
  sending: Sending;
  jobs: readonly IJob[];
}

/** Row “After”, or null without jobs to wait for. */
export function AfterRow({ sending, jobs }: IAfterProps): React.JSX.Element | null {
  const { after, afterAny } = sending.draft;
  const offered = mayRunAfter(jobs).filter((job, i) => i < MOST || after.includes(job.id));
  const fault = faultOf(sending, 'after', 'after');
  if (offered.length === 0 && after.length === 0) {
    return null;
  }
  const choose = (id: string, chosen: boolean) =>
    sending.update({ after: [...after.filter(it => it !== id), ...(chosen ? [id] : [])] });
  return (
    <Row label="After">
      <fieldset className="bp-After" data-testid="benchpool-after">
        {offered.map(job => (
          <label key={job.id} className="bp-Check">
            <input
              type="checkbox"
              checked={after.includes(job.id)}
              onChange={event => choose(job.id, event.target.checked)}
            />
            <span>
              {job.name} <code>{job.id.slice(0, 8)}</code> ({job.state})
            </span>
          </label>
        ))}
        {after.length > 0 && (
          <label className="bp-Check">
            <input
              type="checkbox"
              data-testid="benchpool-after-any"
              checked={afterAny}
              onChange={event => sending.update({ afterAny: event.target.checked })}
            />
            <span>run also if they fail or are cancelled</span>
          </label>
        )}
      </fieldset>
      {fault && (
        <div className="bp-Fault" role="alert">
          {fault}
        </div>
      )}
    </Row>
  );
}
