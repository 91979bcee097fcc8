/** Overlaid curves of several runs in the job list. They are loaded when unfolded. */
import * as React from 'react';
import type { Api } from './api';
import { HEIGHT, LEFT, WIDTH } from './curveModel';
import { AGAIN_MS, DRAWN, POINTS } from './curves';
import { useLiveAnswer } from './hooks';
import { IOverlay, IOverlaidLine, IRunCurves, MOST_RUNS, overlays } from './overlayModel';

export interface IRun {
  id: string;
  label: string;
}

interface IOverlaidProps {
  /** The runs, most important first, since their number is limited. */
  runs: readonly IRun[];
  /** Key that changes when a run has new data. */
  stand: string;
  api: Api;
}

/** Overlaid curves, or null for a single run. */
export function OverlaidCurves(props: IOverlaidProps): React.JSX.Element | null {
  const [unfolded, setUnfolded] = React.useState(false);
  if (props.runs.length < 2) {
    return null;
  }
  return (
    <details
      className="bp-Overlaid"
      data-testid="benchpool-overlaid"
      onToggle={event => setUnfolded(event.currentTarget.open)}
    >
      <summary>Overlaid curves</summary>
      {unfolded && <Overlays {...props} />}
    </details>
  );
}

function Overlays({ runs, stand, api }: IOverlaidProps): React.JSX.Element {
  const shown = runs.slice(0, MOST_RUNS);
  const subject = shown.map(run => run.id).join('/');
  const { value, error } = useLiveAnswer<IRunCurves[]>(subject, stand, AGAIN_MS, () =>
    Promise.all(
      shown.map(async run => ({ ...run, curves: (await api.metrics(run.id, POINTS)).curves }))
    )
  );
  if (value === null) {
    return <p className="bp-Detail-quiet">{error || 'Loading metrics…'}</p>;
  }
  const found = overlays(value);
  if (found.length === 0) {
    return <p className="bp-Detail-quiet">No metric has been reported by two of these runs yet.</p>;
  }
  const more = runs.length - shown.length;
  return (
    <>
      <div className="bp-Curves">
        {found.slice(0, DRAWN).map(one => (
          <OverlayFigure key={one.name} overlay={one} />
        ))}
      </div>
      {more > 0 && (
        <p className="bp-Detail-quiet">
          The first {MOST_RUNS} of {runs.length} runs. The pool’s page shows all.
        </p>
      )}
    </>
  );
}

function OverlayFigure({ overlay }: { overlay: IOverlay }): React.JSX.Element {
  const { name, lines, levels, words } = overlay;
  return (
    <figure className="bp-Curve bp-Overlay" data-metric={name}>
      <figcaption>
        <bdi>{name}</bdi>
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`${name} of ${words}`}>
        {levels.map(({ at, text }) => (
          <React.Fragment key={text}>
            <line className="bp-Curve-level" x1={LEFT} x2={WIDTH} y1={at} y2={at} />
            <text x={LEFT - 5} y={at + 3.5} textAnchor="end">
              {text}
            </text>
          </React.Fragment>
        ))}
        {lines.map(line => (
          <Line key={line.id} line={line} />
        ))}
        <text x={LEFT} y={HEIGHT - 3}>
          step {overlay.begin}
        </text>
        <text x={WIDTH} y={HEIGHT - 3} textAnchor="end">
          {overlay.end}
        </text>
      </svg>
      <ul className="bp-Overlay-runs">
        {lines.map(line => (
          <li key={line.id}>
            <svg viewBox="0 0 24 6" aria-hidden="true" className={`bp-Overlay-line-${line.place}`}>
              <polyline points="0,3 24,3" />
            </svg>
            <span>
              <bdi>{line.label}</bdi> <span className="bp-Detail-quiet">{line.last}</span>
            </span>
          </li>
        ))}
      </ul>
    </figure>
  );
}

function Line({ line }: { line: IOverlaidLine }): React.JSX.Element {
  return (
    <g className={`bp-Overlay-line-${line.place}`} data-run={line.id}>
      <title>{`${line.label}: ${line.last}`}</title>
      {line.stretches.map(points => (
        <polyline key={points} points={points} />
      ))}
      {line.dots.map(([x, y]) => (
        <circle key={`${x},${y}`} cx={x} cy={y} r="2.5" />
      ))}
    </g>
  );
}
