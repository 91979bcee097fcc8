/**
 * A row opened in place: reason and remedy, log, attempts, pauses for others, results.
 */
import * as React from 'react';
import type { Api } from './api';
import { age, endedBy, exact, isTerminal, JobAction, preemptionLine, startRange } from './format';
import { count, duration } from './phrases';
import { FILLED_ACTIONS } from './generated/actions';
import { LogSection } from './logView';
import { Prose } from './prose';
import type { IAttempt, IJob, IJobDetail, IResult } from './tokens';

/** How results are opened in the page. */
export interface IOpeners {
  file(path: string): void;
  folder(path: string): void;
}

export interface IDetailsProps {
  job: IJob;
  now: number;
  api: Api;
  open: IOpeners;
  onAction: (action: JobAction, job: IJob) => void;
}

/** Files listed at once; the rest is in the folder. */
const SHOWN_FILES = 12;

export function JobDetails(props: IDetailsProps): React.JSX.Element {
  const { job, now, api } = props;
  const change = `${job.id}/${job.state}/${job.attempt}/${job.preemptions.length}/${job.workers}`;
  const detail = useAnswer<IJobDetail>(change, () => api.job(job.id));
  const attempts = detail.value?.attempts ?? [];
  return (
    <div className="bp-Detail" data-testid="benchpool-details">
      <Why job={job} now={now} />
      <Results {...props} />
      <LogSection job={job} attempts={attempts} api={api} />
      {detail.error && <p className="bp-Note bp-mod-warn">{detail.error}</p>}
      <Attempts attempts={attempts} now={now} />
      <Preemptions job={job} now={now} />
      <Facts job={job} onAction={props.onAction} />
    </div>
  );
}

/** Ask anew whenever `key` changes; the last answer stays until the next one is there. */
function useAnswer<T>(key: string, ask: () => Promise<T>): { value: T | null; error: string } {
  const [answer, setAnswer] = React.useState<{ value: T | null; error: string }>({
    value: null,
    error: ''
  });
  const asked = React.useRef(ask);
  asked.current = ask;
  React.useEffect(() => {
    let wanted = true;
    asked.current().then(
      value => wanted && setAnswer({ value, error: '' }),
      (error: Error) => wanted && setAnswer(old => ({ ...old, error: error.message }))
    );
    return () => {
      wanted = false;
    };
  }, [key]);
  return answer;
}

function Why({ job, now }: { job: IJob; now: number }): React.JSX.Element | null {
  const range = startRange(job.estimated_start, now);
  if (!job.reason && !range) {
    return null;
  }
  return (
    <div className="bp-Why" data-testid="benchpool-reason">
      {job.reason && (
        <p className="bp-Why-text">
          <Prose text={job.reason.text} />
        </p>
      )}
      {job.reason?.remedy && (
        <p className="bp-Detail-quiet">
          <Prose text={job.reason.remedy} />
        </p>
      )}
      {range && <p className="bp-Detail-quiet">Likely to start {range}.</p>}
    </div>
  );
}

function Results({ job, api, open }: IDetailsProps): React.JSX.Element | null {
  const done = isTerminal(job.state);
  const result = useAnswer<IResult | null>(`${job.id}/${done}`, () =>
    done ? api.result(job.id) : Promise.resolve(null)
  );
  const value = result.value;
  if (result.error) {
    return <p className="bp-Detail-quiet">{result.error}</p>;
  }
  if (!value || (!value.notebook && !value.output_dir && value.files.length === 0)) {
    return null;
  }
  const { notebook, output_dir: folder } = value;
  const files = value.files.filter(path => path !== notebook);
  return (
    <section className="bp-Results" aria-label={`Results of ${job.name}`}>
      {notebook && (
        <button
          type="button"
          className="jp-mod-styled jp-mod-accept"
          data-testid="benchpool-open-result"
          onClick={() => open.file(notebook)}
        >
          Open executed notebook
        </button>
      )}
      {folder && (
        <button type="button" className="bp-Link" onClick={() => open.folder(folder)}>
          show folder
        </button>
      )}
      <ul className="bp-Files">
        {files.slice(0, SHOWN_FILES).map(path => (
          <li key={path}>
            <button
              type="button"
              className="bp-Link"
              title={path}
              data-testid="benchpool-result-file"
              onClick={() => open.file(path)}
            >
              {within(path, folder)}
            </button>
          </li>
        ))}
        {files.length > SHOWN_FILES && <li>and {files.length - SHOWN_FILES} more</li>}
      </ul>
    </section>
  );
}

function within(path: string, folder: string | null): string {
  return folder && path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : path;
}

function Attempts(props: { attempts: readonly IAttempt[]; now: number }): React.JSX.Element | null {
  if (props.attempts.length === 0) {
    return null;
  }
  return (
    <section>
      <h4 className="bp-Detail-title">Attempts</h4>
      <ol className="bp-Attempts" data-testid="benchpool-attempts">
        {[...props.attempts].reverse().map(attempt => (
          <li key={attempt.attempt}>
            <span className="bp-Attempts-number">{attempt.attempt}</span>
            <span>
              {endedBy(attempt)}
              <span className="bp-Detail-quiet"> · {attemptFacts(attempt, props.now)}</span>
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}

function attemptFacts(attempt: IAttempt, now: number): string {
  const until = attempt.ended ? Date.parse(attempt.ended) : now;
  const ran = attempt.started ? duration((until - Date.parse(attempt.started)) / 1000) : '';
  const gpus = attempt.gpus.length ? count(attempt.gpus.length, 'GPU') : '';
  const nodes = attempt.nodes.length ? `on ${[...new Set(attempt.nodes)].join(', ')}` : '';
  return [ran, gpus, nodes].filter(part => part).join(' · ');
}

function Preemptions({ job, now }: { job: IJob; now: number }): React.JSX.Element | null {
  if (job.preemptions.length === 0) {
    return null;
  }
  return (
    <section>
      <h4 className="bp-Detail-title">Paused for others</h4>
      <ul className="bp-Preemptions" data-testid="benchpool-preemptions">
        {[...job.preemptions].reverse().map(preemption => (
          <li key={preemption.at} title={exact(preemption.at)}>
            {preemptionLine(preemption, now)}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Facts({ job, onAction }: Pick<IDetailsProps, 'job' | 'onAction'>): React.JSX.Element {
  return (
    <p className="bp-Detail-quiet bp-Detail-facts">
      project {job.project} · user {job.user} · priority {job.priority}
      {job.preemptible ? '' : ' · never paused for others'} ·{' '}
      <span title={exact(job.submitted)}>sent {age(job.submitted, Date.now())}</span> ·{' '}
      <code>{job.id.slice(0, 8)}</code>
      {isWebAddress(job.url) && (
        <>
          {' · '}
          <a href={job.url} target="_blank" rel="noopener noreferrer">
            link to this job
          </a>
        </>
      )}
      {FILLED_ACTIONS.filter(one => job.actions.includes(one.name)).map(one => (
        <React.Fragment key={one.name}>
          {' · '}
          <button
            type="button"
            className="bp-Link"
            data-action={one.name}
            aria-label={`${one.label} ${job.name}`}
            aria-haspopup="dialog"
            title={one.summary}
            onClick={() => onAction(one.name, job)}
          >
            {one.label}…
          </button>
        </React.Fragment>
      ))}
    </p>
  );
}

/** Only web addresses and paths become links, never a script. */
function isWebAddress(url: string): boolean {
  return /^(https?:\/\/|\/(?!\/))/.test(url);
}
