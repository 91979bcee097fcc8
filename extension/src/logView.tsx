/** Live log of a job: follows the end until the reader scrolls up, with copy and download. */
import { Clipboard } from '@jupyterlab/apputils';
import * as React from 'react';
import type { Api, ILogPlace } from './api';
import { isWebAddress } from './addresses';
import { isTerminal } from './format';
import { logEnd } from './phrases';
import { LogFollower } from './logFollower';
import { ILogLine, placesIn } from './logPlaces';
import { useChanged } from './hooks';
import type { IAttempt, IJob } from './tokens';

/** Distance from the end within which the view follows new lines, in pixels. */
const NEAR_END_PX = 24;

export function LogSection(props: {
  job: IJob;
  attempts: readonly IAttempt[];
  api: Api;
  onPlace: (place: ILogLine) => void;
}): React.JSX.Element {
  const { job, attempts } = props;
  const [chosen, setChosen] = React.useState<number | null>(null);
  const [wanted, setWorker] = React.useState(0);
  if (job.attempt === 0) {
    const text = isTerminal(job.state)
      ? 'There is no log: the job never started.'
      : 'No log yet: the job has not started.';
    return <p className="bp-Detail-quiet">{text}</p>;
  }
  const attempt = chosen ?? job.attempt;
  // Workers that left the job and their replacements have logs too.
  const workers = attempts.find(one => one.attempt === attempt)?.nodes.length ?? job.workers;
  const worker = wanted < workers ? wanted : 0;
  return (
    <section className="bp-Log" aria-label={`Log of ${job.name}`}>
      <div className="bp-Log-choice">
        <Choice
          label="Attempt"
          value={attempt}
          values={attempts.length > 1 ? attempts.map(one => one.attempt) : []}
          onChange={value => setChosen(value === job.attempt ? null : value)}
        />
        <Choice
          label="Worker"
          value={worker}
          values={workers > 1 ? Array.from({ length: workers }, (_, i) => i) : []}
          onChange={setWorker}
        />
      </div>
      <LiveLog
        key={`${job.id}/${attempt}/${worker}`}
        api={props.api}
        name={job.name}
        place={{ job: job.id, attempt, worker }}
        url={`${job.url}?attempt=${attempt}&worker=${worker}&line=0#log-h`}
        onPlace={props.onPlace}
        ended={(empty: boolean) => logEnd(attempt, job.attempt, isTerminal(job.state), empty)}
      />
    </section>
  );
}

function Choice(props: {
  label: string;
  value: number;
  values: readonly number[];
  onChange: (value: number) => void;
}): React.JSX.Element | null {
  if (props.values.length === 0) {
    return null;
  }
  return (
    <label className="bp-Form-inline">
      <span>{props.label}</span>
      <select
        className="jp-mod-styled"
        value={props.value}
        onChange={event => props.onChange(Number(event.target.value))}
      >
        {props.values.map(value => (
          <option key={value} value={value}>
            {value}
          </option>
        ))}
      </select>
    </label>
  );
}

interface ILiveLogProps {
  api: Api;
  name: string;
  place: ILogPlace;
  /** Address of the page with an anchor per line. */
  url: string;
  /** Open a place in the log. */
  onPlace: (place: ILogLine) => void;
  /** Return the text below the log of an ended attempt. */
  ended: (empty: boolean) => string;
}

function LiveLog({ api, name, place, url, ended, onPlace }: ILiveLogProps): React.JSX.Element {
  // The React key of this component identifies the place, so one follower exists per place.
  const [log] = React.useState(() => new LogFollower(api, place));
  React.useEffect(() => {
    log.start();
    return () => log.dispose();
  }, [log]);
  useChanged(log);
  const [follows, setFollows] = React.useState(true);
  const box = React.useRef<HTMLPreElement>(null);
  React.useLayoutEffect(() => {
    if (follows && box.current) {
      box.current.scrollTop = box.current.scrollHeight;
    }
  });
  return (
    <>
      <div className="bp-Log-frame">
        <pre
          ref={box}
          className="bp-Log-text"
          data-testid="benchpool-log"
          data-ended={log.ended}
          tabIndex={0}
          role="region"
          aria-label={`Log of ${name}, attempt ${place.attempt}`}
          onScroll={event => setFollows(isAtEnd(event.currentTarget))}
        >
          {(log.text.dropped > 0 || log.before > 0) && (
            <em>… earlier lines are not shown; the download has them …{'\n'}</em>
          )}
          {log.text.blocks().map(block => (
            <LogBlock key={block.key} text={block.text} onPlace={onPlace} />
          ))}
        </pre>
        {!follows && (
          <button type="button" className="bp-Log-follow" onClick={() => setFollows(true)}>
            Follow the end
          </button>
        )}
      </div>
      <div className="bp-Log-foot">
        <span className="bp-Detail-quiet">{standing(log, ended)}</span>
        <LogButtons log={log} name={name} url={url} />
      </div>
    </>
  );
}

interface IBlockProps {
  text: string;
  onPlace: (place: ILogLine) => void;
}

/** Block of log lines with links to code, rendered again only after a change. */
const LogBlock = React.memo(
  function LogBlock({ text, onPlace }: IBlockProps): React.JSX.Element {
    return (
      <span>
        {placesIn(text).map(({ text: part, place }, i) =>
          place === null ? (
            part
          ) : (
            <button key={i} type="button" className="bp-Link" onClick={() => onPlace(place)}>
              {part}
            </button>
          )
        )}
      </span>
    );
  },
  (before, after) => before.text === after.text
);

function isAtEnd(box: HTMLElement): boolean {
  return box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_END_PX;
}

function standing(log: LogFollower, ended: ILiveLogProps['ended']): string {
  if (log.trouble) {
    return log.trouble;
  }
  if (log.ended) {
    return ended(log.text.isEmpty);
  }
  return log.text.isEmpty ? 'Waiting for the first line…' : 'Live';
}

function LogButtons(props: { log: LogFollower; name: string; url: string }): React.JSX.Element {
  const { log, name, url } = props;
  const [status, setStatus] = React.useState('');
  const show = (text: string) => {
    setStatus(text);
    setTimeout(() => setStatus(''), 2500);
  };
  const copy = () => {
    Clipboard.copyToSystem(log.text.toString());
    show('Copied');
  };
  const download = () =>
    log.whole().then(
      whole => save(whole, `${name}-attempt-${log.place.attempt}.log`),
      (error: Error) => show(error.message)
    );
  return (
    <span className="bp-Log-buttons">
      <span role="status">{status}</span>
      <button
        type="button"
        className="bp-Link"
        onClick={copy}
        aria-label={`Copy the log of ${name}`}
      >
        copy
      </button>
      <button
        type="button"
        className="bp-Link"
        onClick={() => void download()}
        aria-label={`Download the log of ${name}`}
      >
        download
      </button>
      {isWebAddress(url) && (
        <a
          href={url}
          target="_blank"
          rel="noopener noreferrer"
          title="Page with a link to each line"
        >
          show line numbers
        </a>
      )}
    </span>
  );
}

function save(blob: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name.replace(/[^\w.-]+/g, '_');
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
