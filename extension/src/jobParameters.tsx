/** Parameters in the job details. */
import * as React from 'react';
import { typedAgain } from './parameters';
import type { IJob } from './tokens';

/** Parameters that the notebook, cells or function of the job received. */
export function JobParameters({ job }: { job: IJob }): React.JSX.Element | null {
  const values = Object.entries(typedAgain(job.parameters ?? {}));
  return values.length === 0 ? null : (
    <p className="bp-Detail-quiet" data-testid="benchpool-job-parameters">
      {values.map(([name, value], at) => (
        <React.Fragment key={name}>
          {at > 0 && ' · '}
          <code>
            {name} = {value}
          </code>
        </React.Fragment>
      ))}
    </p>
  );
}
