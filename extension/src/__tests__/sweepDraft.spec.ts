import { faultOfSweep, isSwept, NO_SWEEP, sweepOf } from '../sweepDraft';

const one = (name: string, values: string): typeof NO_SWEEP => ({
  ...NO_SWEEP,
  names: [{ name, values }]
});

describe('a sweep in the dialog', () => {
  it('is absent if no values are typed', () => {
    expect(sweepOf(NO_SWEEP)).toEqual({});
    expect(isSwept(one(' ', ''))).toBe(false);
    expect(faultOfSweep({ ...NO_SWEEP, trials: 'x' })).toBeNull();
  });

  it('is sent with names, values and stop conditions', () => {
    const draft = {
      ...one('lr', ' 0.1, 0.01 '),
      metric: 'loss',
      gpuHours: '2.5',
      stopEarly: '100'
    };
    expect(sweepOf(draft).sweep).toEqual({
      array: null,
      values: { lr: '0.1, 0.01' },
      metric: 'loss',
      goal: null,
      trials: null,
      at_once: 4,
      stop_early: '100',
      gpu_hours: 2.5,
      trial_hours: null
    });
    expect(faultOfSweep(draft)).toBeNull();
  });

  it('is an array if only task numbers are given', () => {
    const array = { ...NO_SWEEP, array: ' 0-31%4 ', trialHours: '2' };
    expect([isSwept(array), faultOfSweep(array)]).toEqual([true, null]);
    expect(sweepOf(array).sweep).toMatchObject({ array: '0-31%4', values: {}, trial_hours: 2 });
    expect(faultOfSweep({ ...one('lr', '1'), array: '0-3' })).toBe(
      'Array: its tasks differ only in their number. Remove the values or the array.'
    );
  });

  it.each([
    [one('', '1, 2'), 'Sweep: enter a name for the values 1, 2.'],
    [one('2x', '1'), 'Sweep: “2x” is not a valid name.'],
    [one('lr', ''), 'Sweep: lr has no values yet, for example 0.1, 0.01.'],
    [
      { ...NO_SWEEP, names: [0, 1].map(() => ({ name: 'lr', values: '1' })) },
      'Sweep: lr is listed twice. Put its values on one line.'
    ],
    [{ ...one('lr', '1'), trials: '1.5' }, 'Trials: a whole number above 0, or empty.'],
    [{ ...one('lr', '1'), gpuHours: '-1' }, 'GPU-hours: a number above 0, or empty.']
  ])('reports faults', (draft, words) => {
    expect(faultOfSweep(draft)).toBe(words);
  });
});
