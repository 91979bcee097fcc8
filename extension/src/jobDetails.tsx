/** Details of an open row: reason and remedy, log, attempts, pauses, results. */
import * as React from 'react';
import type { Api } from './api';
import { afterFact } from './after';
import { advised, CHANGE } from './changing';
import { isWebAddress } from './addresses';
import { CopyLink } from './copyLink';
import { age, endedBy, exact, isTerminal, JobAction, pauseLine, startSentence } from './format';
import { count, duration } from './phrases';
import { CurvesSection } from './curves';
import { FILLED_ACTIONS } from './generated/actions';
import { failedAt } from './failing';
import { optionsOf } from './filling';
import { useAnswer } from './hooks';
import { JobParameters } from './jobParameters';
import type { ILogLine } from './logPlaces';
import { LogSection } from './logView';
import { Prose } from './prose';
import { RunChangesFold } from './runChanges';
import { SentFold } from './sentCode';
import { TrackerLinks } from './trackerLinks';
import type {
  IAttempt,
  IChangeRequest,
  IJob,
  IJobDetail,
  IJobUsage,
  IPreemption,
  IResult
} from './tokens';
import { jobCommand } from './twins';

/** Functions that open results and code in the page. */
export interface IOpeners {
  file(path: string): void;
  folder(path: string): void;
  /** Open the place of a failure. */
  failure(job: IJob): void;
  /** Open a place from the log: a line of a cell or file. */
  place(job: IJob, place: ILogLine): void;
  /** Open the place of a failure and offer to send the job again with the same answers. */
  fix(job: IJob): void;
  /** Insert the line that loads a value of the job into a notebook. */
  load(job: IJob, line: string): void;
}

export interface IDetailsProps {
  job: IJob;
  now: number;
  api: Api;
  open: IOpeners;
  onAction: (action: JobAction, job: IJob, wanted?: IChangeRequest) => void;
}

/** Delay after the end of a job until its GPU use is known, in milliseconds. */
const MEASURED_MS = 5000;

/** Maximum number of listed files. The result folder has all of them. */
const SHOWN_FILES = 12;

export function JobDetails(props: IDetailsProps): React.JSX.Element {
  const { job, now, api } = props;
  const measured = job.ended ? now - Date.parse(job.ended) > MEASURED_MS : false;
  const change = `${job.id}/${job.state}/${job.attempt}/${job.pause?.at ?? ''}/${job.workers}/${measured}`;
  const detail = useAnswer<IJobDetail>(change, () => api.job(job.id));
  const attempts = detail.value?.attempts ?? [];
  return (
    <div className="bp-Detail" data-testid="benchpool-details">
      <Why job={job} now={now} onAction={props.onAction} />
      {job.note && (
        <p data-testid="benchpool-job-note">
          Note: <bdi>{job.note}</bdi>
        </p>
      )}
      <Failure job={job} open={props.open} />
      <Results {...props} />
      <CurvesSection job={job} api={api} />
      <LogSection
        job={job}
        attempts={attempts}
        api={api}
        onPlace={place => props.open.place(job, place)}
      />
      {detail.error && <p className="bp-Note bp-mod-warn">{detail.error}</p>}
      {detail.value?.usage && <Usage usage={detail.value.usage} />}
      <Attempts attempts={attempts} now={now} url={job.url} retried={detail.value?.retried ?? ''} />
      <Pauses pauses={detail.value?.pauses ?? job.preemptions} now={now} />
      <SentFold job={job} api={api} />
      <JobParameters job={job} />
      <RunChangesFold job={job} api={api} />
      <Facts job={job} onAction={props.onAction} />
    </div>
  );
}

/** GPU use of an ended job, with advice for the next job. */
function Usage({ usage }: { usage: IJobUsage }): React.JSX.Element {
  const figures = usage.figures.map(({ name, text }) => `${name} ${text}`).join(' · ');
  return (
    <section data-testid="benchpool-usage">
      <h4 className="bp-Detail-title">What it used</h4>
      {figures && <p>{figures}</p>}
      <p>
        <Prose text={[usage.text, usage.change].filter(part => part).join(' ')} />
        {usage.option && (
          <>
            {' '}
            Send with <code>{usage.option}</code>.
          </>
        )}
      </p>
    </section>
  );
}

function Why(props: Pick<IDetailsProps, 'job' | 'now' | 'onAction'>): React.JSX.Element | null {
  const { job, now } = props;
  const starts = startSentence(job.estimated_start, now);
  if (!job.reason && !starts) {
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
      {advised(job).map(({ name, wanted, label }) => (
        <button
          key={name}
          type="button"
          className="jp-mod-styled"
          data-testid="benchpool-start-with"
          title={jobCommand('change', job.id, optionsOf(CHANGE, wanted))}
          onClick={() => props.onAction('change', job, wanted)}
        >
          {label}
        </button>
      ))}
      {starts && <p className="bp-Detail-quiet">Starts {starts}.</p>}
    </div>
  );
}

/** Buttons of a failure: open its cell or line, and send the job again. */
function Failure({ job, open }: Pick<IDetailsProps, 'job' | 'open'>): React.JSX.Element | null {
  const at = failedAt(job);
  return at ? (
    <p className="bp-Failure">
      <button
        type="button"
        className="jp-mod-styled jp-mod-accept"
        data-testid="benchpool-fix"
        onClick={() => open.fix(job)}
      >
        Fix and send again…
      </button>
      <button
        type="button"
        className="jp-mod-styled"
        data-testid="benchpool-open-failure"
        onClick={() => open.failure(job)}
      >
        {at.label}
      </button>
    </p>
  ) : null;
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
          className={`jp-mod-styled ${job.state === 'failed' ? '' : 'jp-mod-accept'}`}
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
      <Values job={job} result={value} open={open} />
    </section>
  );
}

/** Named values of the cells, each with a button that loads it into a notebook. */
function Values(props: { job: IJob; result: IResult; open: IOpeners }): React.JSX.Element | null {
  const { job, open } = props;
  const { values = [], left_out: leftOut = [] } = props.result;
  if (values.length + leftOut.length === 0) {
    return null;
  }
  return (
    <ul className="bp-Files" aria-label={`Values of ${job.name}`} data-testid="benchpool-values">
      {values.map(value => (
        <li key={value.name}>
          <code>{value.name}</code> <span className="bp-Detail-quiet">{value.text}</span>{' '}
          <button
            type="button"
            className="bp-Link"
            data-testid="benchpool-load-value"
            aria-label={`Load ${value.name} into notebook`}
            title={value.line}
            onClick={() => open.load(job, value.line)}
          >
            Load into notebook
          </button>
        </li>
      ))}
      {leftOut.map(why => (
        <li key={why} className="bp-Detail-quiet">
          Not kept: {why}.
        </li>
      ))}
    </ul>
  );
}

function within(path: string, folder: string | null): string {
  return folder && path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : path;
}

function attemptUrl(url: string, attempt: number): string {
  return `${url}?attempt=${attempt}#log-h`;
}

/** Link to the log of an attempt on the job page. */
function AttemptLink(props: { url: string; attempt: number }): React.JSX.Element {
  const { url, attempt } = props;
  return isWebAddress(url) ? (
    <a
      href={attemptUrl(url, attempt)}
      target="_blank"
      rel="noopener noreferrer"
      aria-label={`Page of attempt ${attempt}`}
    >
      {attempt}
    </a>
  ) : (
    <>{attempt}</>
  );
}

function Attempts(props: {
  attempts: readonly IAttempt[];
  now: number;
  url: string;
  retried: string;
}): React.JSX.Element | null {
  if (props.attempts.length === 0) {
    return null;
  }
  return (
    <section>
      <h4 className="bp-Detail-title">Attempts</h4>
      {props.retried && (
        <p data-testid="benchpool-retried">
          <Prose text={props.retried} />
        </p>
      )}
      <ol className="bp-Attempts" data-testid="benchpool-attempts">
        {[...props.attempts].reverse().map(attempt => (
          <li key={attempt.attempt}>
            <span className="bp-Attempts-number">
              <AttemptLink url={props.url} attempt={attempt.attempt} />
            </span>
            <span>
              {endedBy(attempt)}
              <span className="bp-Detail-quiet"> · {attemptFacts(attempt, props.now)}</span>{' '}
              <CopyLink
                url={attemptUrl(props.url, attempt.attempt)}
                what={`attempt ${attempt.attempt}`}
              />
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

function Pauses(props: { pauses: readonly IPreemption[]; now: number }): React.JSX.Element | null {
  const { pauses, now } = props;
  if (pauses.length === 0) {
    return null;
  }
  return (
    <section>
      <h4 className="bp-Detail-title">Pauses</h4>
      <ul className="bp-Preemptions" data-testid="benchpool-preemptions">
        {[...pauses].reverse().map(pause => (
          <li key={pause.at} title={exact(pause.at)}>
            {pauseLine(pause, now)}
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
      {job.preemptible ? '' : ' · never paused for others'}
      {afterFact(job)} ·{' '}
      <span title={exact(job.submitted)}>sent {age(job.submitted, Date.now())}</span> ·{' '}
      <code>{job.id.slice(0, 8)}</code>
      {isWebAddress(job.url) && (
        <>
          {' · '}
          <a href={job.url} target="_blank" rel="noopener noreferrer">
            link to this job
          </a>{' '}
          <CopyLink url={job.url} what={job.name} />
          {' · '}
          <a
            href={`${job.url}/compare`}
            target="_blank"
            rel="noopener noreferrer"
            data-testid="benchpool-compare"
            aria-label={`Compare ${job.name} with another send`}
          >
            compare
          </a>
        </>
      )}
      <TrackerLinks job={job} />
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
