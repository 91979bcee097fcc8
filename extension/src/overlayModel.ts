/** Overlaid curves of several runs: one chart with one scale per metric. Pure. */
import { ICurvePoint, IMark, metric, pointsOf, scaleOver, stretchesOf, ticks } from './curveModel';
import type { IGroup } from './narrowing';
import { count } from './phrases';
import type { ICurve } from './tokens';

/** Maximum number of lines that a reader can distinguish. */
export const MOST_RUNS = 6;

export interface IRunCurves {
  id: string;
  label: string;
  curves: readonly ICurve[];
}

/** Line of one run. `place` selects its style. */
export interface IOverlaidLine {
  id: string;
  label: string;
  place: number;
  stretches: string[];
  dots: [number, number][];
  last: string;
}

export interface IOverlay {
  name: string;
  words: string;
  lines: IOverlaidLine[];
  levels: IMark[];
  begin: string;
  end: string;
}

interface IDrawable {
  run: IRunCurves;
  place: number;
  curve: ICurve;
  points: ICurvePoint[];
}

/** Return the started jobs of a group as lines, newest first, with ID and state. */
export function sendsOf(group: IGroup): { id: string; label: string }[] {
  return [group.job, ...group.earlier]
    .filter(job => job.attempt > 0)
    .map(job => ({ id: job.id, label: `${job.id.slice(0, 8)} (${job.state})` }));
}

/** Return one chart per metric that several runs reported, in the order of the first run. */
export function overlays(runs: readonly IRunCurves[]): IOverlay[] {
  const names = new Set(runs.flatMap(run => run.curves.map(curve => curve.name)));
  return [...names]
    .map(name => ({ name, drawn: drawable(runs, name) }))
    .filter(({ drawn }) => drawn.length > 1)
    .map(({ name, drawn }) => overlay(name, drawn));
}

/** Return the runs with a number for the metric. Each run keeps its `place` in all charts. */
function drawable(runs: readonly IRunCurves[], name: string): IDrawable[] {
  return runs.flatMap((run, place) => {
    const curve = run.curves.find(one => one.name === name);
    return curve?.min && curve.max ? [{ run, place, curve, points: pointsOf(curve) }] : [];
  });
}

function overlay(name: string, drawn: readonly IDrawable[]): IOverlay {
  const steps = drawn.flatMap(({ points }) => points.map(({ step }) => step));
  const scale = scaleOver(
    steps.reduce((one, other) => Math.min(one, other)),
    steps.reduce((one, other) => Math.max(one, other)),
    Math.min(...drawn.map(({ curve }) => curve.min!.value)),
    Math.max(...drawn.map(({ curve }) => curve.max!.value))
  );
  const lines = drawn.map(({ run, place, curve, points }) => {
    const stretches = stretchesOf(points, scale);
    return {
      id: run.id,
      label: run.label,
      place,
      stretches: stretches
        .filter(places => places.length > 1)
        .map(places => places.map(([x, y]) => `${x},${y}`).join(' ')),
      dots: stretches.filter(places => places.length === 1).flat(),
      last: curve.last ? `${metric(curve.last.value)} at step ${curve.last.step}` : 'no number'
    };
  });
  return {
    name,
    words: `${count(lines.length, 'run')}: ${lines.map(it => `${it.label} ${it.last}`).join('; ')}.`,
    lines,
    levels: ticks(scale.low, scale.high).map(value => ({
      at: scale.y(value),
      text: metric(value)
    })),
    begin: String(scale.first),
    end: String(scale.last)
  };
}
