/** Links from a job to its runs in trackers such as W&B and MLflow. */
import * as React from 'react';
import type { IJob } from './tokens';

/** Return whether an address that the job reported is a web page. The pool checks it too. */
function isPage(url: string): boolean {
  return /^https?:\/\//.test(url);
}

export function TrackerLinks({ job }: { job: IJob }): React.JSX.Element {
  return (
    <>
      {(job.tracker_runs ?? [])
        .filter(run => isPage(run.url))
        .map(run => (
          <React.Fragment key={run.url}>
            {' · '}
            <a
              href={run.url}
              target="_blank"
              rel="noopener noreferrer nofollow"
              title={run.url}
              data-testid="benchpool-tracker-run"
            >
              {run.text}
            </a>
          </React.Fragment>
        ))}
    </>
  );
}
