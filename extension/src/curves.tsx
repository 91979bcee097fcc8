/** Curves in the job details: one live chart per metric. */
import * as React from 'react';
import type { Api } from './api';
import {
  FOOT,
  HEIGHT,
  ICurvePicture,
  LEFT,
  metric,
  newestText,
  picture,
  pointsOf,
  reportsOf,
  WIDTH
} from './curveModel';
import { isWebAddress } from './addresses';
import { useLiveAnswer } from './hooks';
import { kindOf } from './sweepModel';
import type { ICurve, IJob, IJobMetrics } from './tokens';

/** Minimum interval between requests for metrics, in milliseconds; shorter than that of reports. */
export const AGAIN_MS = 800;
/** Points per curve: the resolution of a chart of this size. */
export const POINTS = 150;
/** Maximum number of charts. The job page shows all metrics. */
export const DRAWN = 6;
/** Maximum number of table rows. */
const ROWS = 12;

/** Metrics of a job, reloaded after new reports with a minimum interval. */
export function CurvesSection({ job, api }: { job: IJob; api: Api }): React.JSX.Element | null {
  const subject = `${job.id}/${job.state}/${job.attempt}`;
  const answer = useLiveAnswer<IJobMetrics | null>(subject, reportsOf(job), AGAIN_MS, () =>
    job.attempt ? api.metrics(job.id, POINTS) : Promise.resolve(null)
  );
  const curves = answer.value?.curves ?? [];
  if (curves.length === 0) {
    return answer.error ? <p className="bp-Detail-quiet">{answer.error}</p> : null;
  }
  const more = curves.length - DRAWN;
  return (
    <section data-testid="benchpool-curves" aria-label={`Curves of ${job.name}`}>
      <h4 className="bp-Detail-title">
        Curves <CompareLink job={job} query={`job=${job.id}`} text="over those of other jobs" />
        {job.trial && (
          <>
            {' · '}
            <CompareLink
              job={job}
              query={`sweep=${job.trial.sweep}`}
              text={`of the other ${kindOf(job.trial.array).each}s`}
            />
          </>
        )}
      </h4>
      <div className="bp-Curves">
        {curves.slice(0, DRAWN).map(curve => (
          <CurveFigure key={curve.name} curve={curve} />
        ))}
      </div>
      {more > 0 && <p className="bp-Detail-quiet">{more} more on the page of the job.</p>}
    </section>
  );
}

/** Link to the page that compares jobs. */
function CompareLink(props: { job: IJob; query: string; text: string }): React.JSX.Element | null {
  const { url } = props.job;
  return isWebAddress(url) ? (
    <a
      className="bp-Curves-compare"
      href={url.replace(/jobs\/[^/]*$/, `compare?${props.query}`)}
      target="_blank"
      rel="noopener noreferrer"
    >
      {props.text}
    </a>
  ) : null;
}

function CurveFigure({ curve }: { curve: ICurve }): React.JSX.Element {
  const drawn = picture(curve);
  return (
    <figure className="bp-Curve" data-metric={curve.name}>
      <figcaption>
        <bdi>{curve.name}</bdi> <span className="bp-Detail-quiet">{newestText(curve)}</span>
      </figcaption>
      <CurveSvg drawn={drawn} />
      <details>
        <summary>In words and as a table</summary>
        <p>{drawn.words}</p>
        <CurveTable curve={curve} />
      </details>
    </figure>
  );
}

function CurveSvg({ drawn }: { drawn: ICurvePicture }): React.JSX.Element {
  return (
    <svg
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      role="img"
      aria-label={`${drawn.name} over steps. ${drawn.words}`}
    >
      {drawn.levels.map(({ at, text }) => (
        <React.Fragment key={text}>
          <line className="bp-Curve-level" x1={LEFT} x2={WIDTH} y1={at} y2={at} />
          <text x={LEFT - 5} y={at + 3.5} textAnchor="end">
            {text}
          </text>
        </React.Fragment>
      ))}
      {drawn.pauses.map(({ at, text }) => (
        <g key={text} className="bp-Curve-pause">
          <title>{text}</title>
          <line x1={at} x2={at} y1="2" y2={HEIGHT - FOOT} />
        </g>
      ))}
      {drawn.stretches.map(points => (
        <polyline key={points} points={points} />
      ))}
      {drawn.dots.map(([x, y]) => (
        <circle key={`${x},${y}`} cx={x} cy={y} r="2.5" />
      ))}
      {drawn.broken !== null && (
        <text className="bp-Curve-broken" x={drawn.broken} y={HEIGHT - 20} textAnchor="middle">
          ×<title>no number from here</title>
        </text>
      )}
      <text x={LEFT} y={HEIGHT - 3}>
        step {drawn.begin}
      </text>
      <text x={WIDTH} y={HEIGHT - 3} textAnchor="end">
        {drawn.end}
      </text>
    </svg>
  );
}

function CurveTable({ curve }: { curve: ICurve }): React.JSX.Element {
  const points = pointsOf(curve);
  const every = Math.max(1, Math.ceil(points.length / ROWS));
  const last = points.length - 1;
  return (
    <table className="bp-Curve-table" aria-label={curve.name}>
      <thead>
        <tr>
          <th scope="col">Step</th>
          <th scope="col">Value</th>
          <th scope="col">Attempt</th>
        </tr>
      </thead>
      <tbody>
        {points
          .filter((_, index) => index % every === 0 || index === last)
          .map(({ step, value, attempt }) => (
            <tr key={step}>
              <td>{step}</td>
              <td>{value === null ? 'no number' : metric(value)}</td>
              <td>{attempt}</td>
            </tr>
          ))}
      </tbody>
    </table>
  );
}
