/** Curves of a job as chart lines and as text. Pure. */
import { count } from './phrases';
import type { ICurve, IJob } from './tokens';

export const WIDTH = 240;
export const HEIGHT = 90;
export const LEFT = 40;
export const FOOT = 16;
const RIGHT = 6;
const TOP = 8;

export interface IMark {
  at: number;
  text: string;
}

/**
 * Chart of one metric: line segments, single points, positions without a number, scale and pauses.
 */
export interface ICurvePicture {
  name: string;
  words: string;
  stretches: string[];
  dots: [number, number][];
  broken: number | null;
  levels: IMark[];
  pauses: IMark[];
  begin: string;
  end: string;
}

/** Return a key that changes with each report of a job. */
export function reportsOf(job: IJob): string {
  return JSON.stringify([job.metrics, job.metrics_updated]);
}

/** Return the newest value of a curve as text. */
export function newestText(curve: ICurve): string {
  const value = curve.values[curve.values.length - 1] ?? null;
  return value === null ? 'no number' : metric(value);
}

/** Format a value like `phrases.sparks.metric` of the pool. */
export function metric(value: number): string {
  const [digits = '', power = '0'] = value.toExponential(3).split('e');
  const short = (text: string) => (text.includes('.') ? text.replace(/\.?0+$/, '') : text);
  const exponent = Number(power);
  if (exponent < -4 || exponent >= 4) {
    const sign = exponent < 0 ? '-' : '+';
    return `${short(digits)}e${sign}${String(Math.abs(exponent)).padStart(2, '0')}`;
  }
  return short(value.toPrecision(4));
}

/** Point of a curve. A value that is not a finite number is null. */
export interface ICurvePoint {
  step: number;
  value: number | null;
  attempt: number;
}

export function pointsOf(curve: ICurve): ICurvePoint[] {
  return curve.steps.map((step, index) => ({
    step,
    value: curve.values[index] ?? null,
    attempt: curve.attempts[index] ?? 1
  }));
}

export function picture(curve: ICurve): ICurvePicture {
  const points = pointsOf(curve);
  const scale = scaleOf(curve, points);
  const stretches = stretchesOf(points, scale);
  const broken = points.find(point => point.value === null);
  return {
    name: curve.name,
    words: words(curve),
    stretches: stretches
      .filter(places => places.length > 1)
      .map(places => places.map(([x, y]) => `${x},${y}`).join(' ')),
    dots: stretches.filter(places => places.length === 1).flat(),
    broken: broken ? scale.x(broken.step) : null,
    levels: ticks(scale.low, scale.high).map(value => ({
      at: scale.y(value),
      text: metric(value)
    })),
    pauses: points
      .filter((point, index) => index > 0 && point.attempt !== points[index - 1]?.attempt)
      .map(({ step, attempt }) => ({
        at: scale.x(step),
        text: `attempt ${attempt} from step ${step}`
      })),
    begin: String(scale.first),
    end: String(scale.last)
  };
}

/** Return segments of consecutive points. A value that is not a number is a gap. */
export function stretchesOf(points: readonly ICurvePoint[], scale: IScale): [number, number][][] {
  const found: [number, number][][] = [];
  let open: [number, number][] | null = null;
  for (const { step, value } of points) {
    if (value === null) {
      open = null;
      continue;
    }
    if (open === null) {
      found.push((open = []));
    }
    open.push([scale.x(step), scale.y(value)]);
  }
  return found;
}

export interface IScale {
  first: number;
  last: number;
  low: number;
  high: number;
  x(step: number): number;
  y(value: number): number;
}

function scaleOf(curve: ICurve, points: readonly ICurvePoint[]): IScale {
  const first = points[0]?.step ?? 0;
  const last = points[points.length - 1]?.step ?? first;
  return scaleOver(first, last, curve.min?.value ?? 0, curve.max?.value ?? 1);
}

/** Return a scale between two steps and two values, with a margin. */
export function scaleOver(first: number, last: number, least: number, most: number): IScale {
  const room = (most - least) * 0.05 || Math.abs(least) * 0.05 || 1;
  const low = least - room;
  const high = most + room;
  return {
    first,
    last,
    low,
    high,
    x: step => tenth(LEFT + ((step - first) / (last - first || 1)) * (WIDTH - LEFT - RIGHT)),
    y: value => tenth(HEIGHT - FOOT - ((value - low) / (high - low)) * (HEIGHT - FOOT - TOP))
  };
}

function tenth(value: number): number {
  return Math.round(value * 10) / 10;
}

/** Return round numbers from `low` to `high`, at most `most` + 1. */
export function ticks(low: number, high: number, most = 3): number[] {
  const power = 10 ** Math.floor(Math.log10((high - low) / most));
  const step = [1, 2, 2.5, 5, 10].map(one => one * power).find(one => one * most >= high - low);
  if (step === undefined) {
    return [low];
  }
  const found: number[] = [];
  for (let at = Math.ceil(low / step); at * step <= high; at++) {
    found.push(Number((at * step).toPrecision(12)));
  }
  return found;
}

/** Return a text description of a curve. */
export function words(curve: ICurve): string {
  const { last, min, max } = curve;
  if (!last || !min || !max) {
    return 'no value of it is a number.';
  }
  const pauses = new Set(curve.attempts).size - 1;
  const over = pauses ? `, over ${count(pauses, 'pause')}` : '';
  const ended = curve.values[curve.values.length - 1] === null ? ' No number after that.' : '';
  return (
    `${metric(last.value)} at step ${last.step}${over}; least ${metric(min.value)} at step ` +
    `${min.step}, greatest ${metric(max.value)} at step ${max.step}.${ended}`
  );
}
