/** Sweep in the list: state, trials with the best first, and a stop button. */
import { Dialog, showDialog, showErrorMessage } from '@jupyterlab/apputils';
import * as React from 'react';
import { isWebAddress } from './addresses';
import type { Api } from './api';
import { useLiveAnswer } from './hooks';
import { OverlaidCurves } from './overlay';
import {
  ISweepEntry,
  isIdle,
  kindOf,
  numberOf,
  runsOf,
  standOf,
  stopWords,
  trialState,
  trialWords
} from './sweepModel';
import type { IJob, ISweep, ITrialRow } from './tokens';

/** Minimum interval between requests for a sweep, in milliseconds. */
const AGAIN_MS = 1000;
/** Interval of requests while a sweep is under way and none of its trials is, in milliseconds. */
const IDLE_MS = 5000;

const KEEP_BEST = 'Keep only the best';

interface ISweepRowProps {
  entry: ISweepEntry;
  api: Api;
  now: number;
  /** ID of the job whose row is open. */
  wanted: string | null;
  onToggle: (id: string) => void;
  rowOf: (job: IJob) => React.JSX.Element;
}

export function SweepRow(props: ISweepRowProps): React.JSX.Element {
  const { entry, api, now } = props;
  const [unfolded, setUnfolded] = React.useState(false);
  const [stops, setStops] = React.useState(0);
  const { value: sweep, error } = useSweep(entry, api, now, stops);
  const jobs = new Map(entry.trials.map(job => [job.id, job]));
  const wanted = props.wanted !== null && jobs.has(props.wanted);
  const isOpen = unfolded || wanted;
  return (
    <li className="bp-Row bp-Sweep" data-sweep={entry.sweep} data-open={isOpen}>
      <div className="bp-Row-head">
        <button
          type="button"
          className="bp-Row-main"
          aria-expanded={isOpen}
          onClick={() => setUnfolded(!isOpen)}
        >
          <span className="bp-Row-first">
            <span className="bp-Sweep-mark">{entry.array ? 'Array' : 'Sweep'}</span>
            <span className="bp-Row-name" title={entry.name}>
              {entry.name}
            </span>
          </span>
          <span className="bp-Row-second">{sweep?.text ?? error}</span>
          {sweep?.problem && <span className="bp-Row-reason">{sweep.problem}</span>}
        </button>
        {sweep && sweep.state !== 'over' && (
          <button
            type="button"
            className="bp-Link"
            title={`benchpool stop-sweep ${sweep.id.slice(0, 8)}`}
            onClick={() => void stop(api, sweep).then(() => setStops(stops + 1))}
          >
            Stop…
          </button>
        )}
      </div>
      {isOpen && sweep && (
        <>
          <ol
            className="bp-Sweep-trials"
            aria-label={
              entry.array ? `Tasks of ${entry.name}` : `Trials of ${entry.name}, the best first`
            }
          >
            {sweep.trials.map(row => (
              <Trial
                key={row.number}
                sweep={sweep}
                row={row}
                job={jobs.get(row.job ?? '') ?? null}
                {...props}
              />
            ))}
          </ol>
          <OverlaidCurves runs={runsOf(sweep)} stand={standOf(entry)} api={api} />
          {isWebAddress(sweep.url) && (
            <a className="bp-Sweep-page" href={sweep.url} target="_blank" rel="noopener noreferrer">
              {entry.array ? 'All tasks on a page' : 'Values and metrics side by side'}
            </a>
          )}
        </>
      )}
    </li>
  );
}

/**
 * Load a sweep, and reload it after events of its trials. While no trial is under way, the service
 * may end the sweep or retry its next trial without such an event, so it is loaded at intervals.
 */
function useSweep(
  entry: ISweepEntry,
  api: Api,
  now: number,
  stops: number
): { value: ISweep | null; error: string } {
  const [idle, setIdle] = React.useState(false);
  const since = idle ? Math.floor(now / IDLE_MS) : 0;
  const answer = useLiveAnswer(
    `${entry.sweep}/${stops}`,
    `${standOf(entry)}/${since}`,
    AGAIN_MS,
    () => api.sweep(entry.sweep)
  );
  React.useEffect(() => setIdle(isIdle(answer.value)), [answer.value]);
  return answer;
}

function Trial(
  props: ISweepRowProps & { sweep: ISweep; row: ITrialRow; job: IJob | null }
): React.JSX.Element {
  const { sweep, row, job, wanted } = props;
  const isOpen = job !== null && wanted === job.id;
  const line = (
    <>
      {row.number === sweep.best && <span title="The best so far">★ </span>}
      <span className="bp-Sweep-number">{numberOf(sweep, row)}</span> {trialWords(sweep, row)}{' '}
      <span className="bp-Sweep-state">{trialState(row)}</span>
    </>
  );
  return (
    <li data-trial={row.number} data-best={row.number === sweep.best}>
      {job ? (
        <button
          type="button"
          className="bp-Sweep-trial"
          aria-expanded={isOpen}
          onClick={() => props.onToggle(job.id)}
        >
          {line}
        </button>
      ) : (
        <span className="bp-Sweep-trial">{line}</span>
      )}
      {isOpen && <ul className="bp-Sweep-job">{props.rowOf(job)}</ul>}
    </li>
  );
}

async function stop(api: Api, sweep: ISweep): Promise<void> {
  const { kind, each } = kindOf(sweep.plan.array);
  const answer = await showDialog({
    title: `Stop ${kind} “${sweep.name}”?`,
    body: stopWords(sweep),
    buttons: [
      Dialog.cancelButton({ label: 'Keep running' }),
      Dialog.okButton({ label: `Let ${each}s finish` }),
      ...(sweep.best === null ? [] : [Dialog.okButton({ label: KEEP_BEST })]),
      Dialog.warnButton({ label: `Stop and end its ${each}s` })
    ],
    defaultButton: 0
  });
  if (!answer.button.accept) {
    return;
  }
  try {
    const { label, displayType } = answer.button;
    await api.stopSweep(
      sweep.id,
      label === KEEP_BEST ? { keep_best: true } : { let_finish: displayType !== 'warn' }
    );
  } catch (error) {
    await showErrorMessage(sweep.name, (error as Error).message);
  }
}
