/** State as word, shape and colour, and a progress bar. */
import * as React from 'react';
import { percent, STATES } from './phrases';
import type { IProgress, JobState } from './tokens';

const RING = <circle cx="6" cy="6" r="4.6" fill="none" stroke="currentColor" strokeWidth="1.6" />;

const SHAPES: Readonly<Record<JobState, React.ReactNode>> = {
  queued: (
    <>
      {RING}
      <path d="M6 6V2.6M6 6l2.4 1.5" stroke="currentColor" strokeWidth="1.4" fill="none" />
    </>
  ),
  starting: (
    <>
      {RING}
      <path d="M6 1.4a4.6 4.6 0 0 1 0 9.2z" fill="currentColor" />
    </>
  ),
  running: <circle cx="6" cy="6" r="5.2" fill="currentColor" />,
  pausing: (
    <>
      {RING}
      <path d="M4.7 4v4M7.3 4v4" stroke="currentColor" strokeWidth="1.5" />
    </>
  ),
  paused: <path d="M2.5 1.5h2.4v9H2.5zM7.1 1.5h2.4v9H7.1z" fill="currentColor" />,
  succeeded: (
    <path d="M1.5 6.4 4.6 9.6 10.6 2.6" fill="none" stroke="currentColor" strokeWidth="2" />
  ),
  failed: <path d="M2 2l8 8M10 2l-8 8" fill="none" stroke="currentColor" strokeWidth="2.2" />,
  cancelled: (
    <>
      {RING}
      <path d="M2.8 9.2 9.2 2.8" stroke="currentColor" strokeWidth="1.6" />
    </>
  )
};

export function StateMark(props: { state: JobState }): React.JSX.Element {
  return (
    <span className="bp-State" data-state={props.state} data-testid="benchpool-state">
      <svg className="bp-State-shape" viewBox="0 0 12 12" width="12" height="12" aria-hidden="true">
        {SHAPES[props.state]}
      </svg>
      <span className="bp-State-word">{STATES[props.state]}</span>
    </span>
  );
}

export function ProgressBar(props: {
  progress: IProgress;
  name: string;
}): React.JSX.Element | null {
  const { fraction } = props.progress;
  if (fraction === null) {
    return null;
  }
  const value = Math.min(1, Math.max(0, fraction));
  return (
    <div
      className="bp-Progress"
      role="progressbar"
      aria-label={`Progress of ${props.name}`}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(value * 100)}
      aria-valuetext={percent(value)}
    >
      <div className="bp-Progress-bar" style={{ width: `${value * 100}%` }} />
    </div>
  );
}
