/**
 * Curves of several runs over one another: one picture for each name, with one scale. Pure.
 */
import { ICurvePoint, IMark, metric, pointsOf, scaleOver, stretchesOf, ticks } from './curveModel';
import type { IGroup } from './narrowing';
import { count } from './phrases';
import type { ICurve } from './tokens';

/** As many lines as can be told apart. */
export const MOST_RUNS = 6;

export interface IRunCurves {
  id: string;
  label: string;
  curves: readonly ICurve[];
}

/** The line of one run; `place` says how it is drawn. */
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

/** What was sent several times, as lines: newest first, each with its id and what became of it. */
export function sendsOf(group: IGroup): { id: string; label: string }[] {
  return [group.job, ...group.earlier]
    .filter(job => job.attempt > 0)
    .map(job => ({ id: job.id, label: `${job.id.slice(0, 8)} (${job.state})` }));
}

/** One picture for each name that several runs have reported, in the order of the first of them. */
export function overlays(runs: readonly IRunCurves[]): IOverlay[] {
  const names = new Set(runs.flatMap(run => run.curves.map(curve => curve.name)));
  return [...names]
    .map(name => ({ name, drawn: drawable(runs, name) }))
    .filter(({ drawn }) => drawn.length > 1)
    .map(({ name, drawn }) => overlay(name, drawn));
}

/** The runs in which a name has a value that is a number; each keeps its place in all pictures. */
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
