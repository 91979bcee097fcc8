/**
 * The ways from a job to its runs in trackers: W&B, MLflow and others.
 */
import * as React from 'react';
import type { IJob } from './tokens';

/** What a job named itself is followed only as a page: the pool has checked it, and so do we. */
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
