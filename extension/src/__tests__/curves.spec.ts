import { metric, newestText, picture, reportsOf, ticks, words } from '../curveModel';
import type { ICurve } from '../tokens';
import { job } from './builders';

function curve(values: (number | null)[], attempts?: number[]): ICurve {
  const numbers = values.filter((it): it is number => it !== null);
  const at = (value: number) => ({ step: values.indexOf(value), value });
  return {
    name: 'loss',
    steps: values.map((_, index) => index),
    values,
    after_s: values.map((_, index) => index),
    attempts: attempts ?? values.map(() => 1),
    last: numbers.length ? at(numbers[numbers.length - 1]) : null,
    min: numbers.length ? at(Math.min(...numbers)) : null,
    max: numbers.length ? at(Math.max(...numbers)) : null,
    goal: 'min'
  };
}

describe('a curve', () => {
  it.each([
    [0.123456, '0.1235'],
    [12345678, '1.235e+07'],
    [3, '3'],
    [0.00001234, '1.234e-05'],
    [0, '0'],
    [1000, '1000'],
    [10000, '1e+04'],
    [-0.5, '-0.5']
  ])('formats values like the pool: %d', (value, text) => {
    expect(metric(value)).toBe(text);
  });

  it('continues across a pause and marks the pause', () => {
    const drawn = picture(curve([3, 2, 1, 0.5], [1, 1, 2, 2]));
    expect(drawn.stretches).toHaveLength(1);
    expect(drawn.pauses.map(mark => mark.text)).toEqual(['attempt 2 from step 2']);
    expect(drawn.words).toBe(
      '0.5 at step 3, over 1 pause; least 0.5 at step 3, greatest 3 at step 0.'
    );
  });

  it('has a gap at a value that is not a number', () => {
    const drawn = picture(curve([3, 2, null, 1, null]));
    expect(drawn.stretches).toHaveLength(1);
    expect(drawn.dots).toHaveLength(1);
    expect(drawn.broken).not.toBeNull();
    expect(drawn.words).toContain('No number after that.');
    expect(words(curve([null]))).toBe('no value of it is a number.');
  });

  it('shows that its newest value is not a number', () => {
    expect(newestText(curve([3, 2]))).toBe('2');
    expect(newestText(curve([3, null]))).toBe('no number');
  });

  it('is loaded again after each report, whatever it reports', () => {
    const first = job({ metrics: { loss: 1 }, metrics_updated: '2026-11-21T12:00:00Z' });
    const second = { ...first, metrics_updated: '2026-11-21T12:00:01Z' };
    expect(reportsOf(second)).not.toBe(reportsOf(first));
    expect(reportsOf({ ...first, state: 'pausing' })).toBe(reportsOf(first));
  });

  it('shows a single value and equal values', () => {
    expect(picture(curve([2])).dots).toHaveLength(1);
    expect(picture(curve([2, 2])).levels.length).toBeGreaterThan(0);
    expect(picture(curve([0, 0])).stretches[0]).not.toContain('NaN');
  });

  it('has a few round levels', () => {
    expect(ticks(0.03, 1.2)).toEqual([0.5, 1]);
    expect(ticks(-7, 130)).toEqual([0, 50, 100]);
    expect(ticks(0, 1e-7).length).toBeLessThanOrEqual(4);
  });
});
