/** Row of a job: text line, actions, and details below. */
import * as React from 'react';
import { inReadersZone, isTerminal, RowAction, rowActions, timing, timingExact } from './format';
import { done, gpusOfJob, left } from './phrases';
import { IDetailsProps, JobDetails } from './jobDetails';
import { labelsOf } from './labels';
import { PauseNote } from './pauseNote';
import { ProgressBar, StateMark } from './stateMark';
import type { IJob } from './tokens';
import { jobCommand } from './twins';

export interface IRowProps extends IDetailsProps {
  isOpen: boolean;
  showUser: boolean;
  onToggle: (id: string) => void;
}

/** Separator that stays with the following text at a line break. */
const DOT = '\u00a0· ';

const ICONS: Readonly<Record<RowAction, { word: string; path: string }>> = {
  pause: { word: 'Pause', path: 'M4 3h3v10H4zM9 3h3v10H9z' },
  resume: { word: 'Resume', path: 'M4.5 2.5v11l9-5.5z' },
  cancel: {
    word: 'Cancel',
    path: 'M4.1 3 8 6.9 11.9 3 13 4.1 9.1 8l3.9 3.9-1.1 1.1L8 9.1 4.1 13 3 11.9 6.9 8 3 4.1z'
  },
  again: {
    word: 'Run again as it was:',
    path: 'M8 2.5c1.6 0 3 .7 4 1.8V2.5h1.5V7H9V5.5h2A4 4 0 1 0 12 8.6h1.6A5.6 5.6 0 1 1 8 2.5z'
  }
};

function JobRowView(props: IRowProps): React.JSX.Element {
  const { job, isOpen } = props;
  return (
    <li className="bp-Row" data-job-id={job.id} data-state={job.state} data-open={isOpen}>
      <div className="bp-Row-head">
        <button
          type="button"
          className="bp-Row-main"
          aria-expanded={isOpen}
          onClick={() => props.onToggle(job.id)}
        >
          <span className="bp-Row-first">
            <StateMark state={job.state} />
            <span className="bp-Row-name" title={job.name}>
              {job.name}
            </span>
          </span>
          <Summary {...props} />
        </button>
        <span className="bp-Row-actions">
          {rowActions(job).map(action => (
            <ActionButton key={action} action={action} job={job} onAction={props.onAction} />
          ))}
        </span>
      </div>
      {job.progress && !isOpen && !isTerminal(job.state) && (
        <ProgressBar progress={job.progress} name={job.name} />
      )}
      {isOpen && (
        <JobDetails
          job={job}
          now={props.now}
          api={props.api}
          open={props.open}
          onAction={props.onAction}
        />
      )}
    </li>
  );
}

export const JobRow = React.memo(JobRowView);

function Summary({ job, now, showUser, isOpen }: IRowProps): React.JSX.Element {
  const parts = [
    showUser ? job.user : '',
    gpusOfJob(job.gpus, job.workers),
    ...labelsOf(job),
    job.attempt > 1 ? `attempt ${job.attempt}` : '',
    progressWords(job),
    timeLeft(job, now)
  ].filter(part => part);
  return (
    <>
      <PauseNote pause={job.pause} />
      <span className="bp-Row-second">
        {parts.join(DOT)}
        {DOT}
        <span title={timingExact(job)}>{timing(job, now)}</span>
      </span>
      {job.reason && !isOpen && job.pause?.stage !== 'saving' && (
        <span className="bp-Row-reason">{inReadersZone(job.reason.text)}</span>
      )}
    </>
  );
}

/** Return the estimated remaining time of a running job, or an empty string if it is unknown. */
function timeLeft({ progress }: IJob, now: number): string {
  return left(progress?.ends ? (Date.parse(progress.ends) - now) / 1000 : null);
}

function progressWords(job: IJob): string {
  const { progress } = job;
  if (!progress) {
    return '';
  }
  const text = progress.text ?? '';
  return progress.fraction === null
    ? text
    : done(progress.fraction, progress.previous_progress, text);
}

function ActionButton(props: {
  action: RowAction;
  job: IJob;
  onAction: IRowProps['onAction'];
}): React.JSX.Element {
  const { action, job } = props;
  const { word, path } = ICONS[action];
  const label = `${word} ${job.name}`;
  return (
    <button
      type="button"
      className="bp-Action"
      data-action={action}
      aria-label={label}
      title={[label, jobCommand(action, job.id)].filter(line => line).join('\n')}
      onClick={() => props.onAction(action, job)}
    >
      <svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
        <path d={path} fill="currentColor" />
      </svg>
    </button>
  );
}
