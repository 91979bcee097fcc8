/**
 * The parameters of a job, in its details.
 */
import * as React from 'react';
import { typedAgain } from './parameters';
import type { IJob } from './tokens';

/** What its notebook, cells or function were given. */
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
