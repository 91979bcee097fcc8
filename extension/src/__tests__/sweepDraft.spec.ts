import { faultsOfSweep, isSwept, NO_SWEEP, singleOf, sweepOf } from '../sweepDraft';

const one = (name: string, values: string): typeof NO_SWEEP => ({
  ...NO_SWEEP,
  names: [{ name, values }]
});

describe('a sweep in the dialog', () => {
  it('is absent if no values are typed', () => {
    expect(sweepOf(NO_SWEEP)).toEqual({});
    expect(isSwept(one(' ', ''))).toBe(false);
    expect(isSwept({ ...NO_SWEEP, trials: '3' })).toBe(true);
  });

  it('is sent with names, values and stop conditions', () => {
    const draft = {
      ...one('lr', ' 0.1, 0.01 '),
      metric: 'loss',
      gpuHours: '2.5',
      stopEarly: '100',
      method: 'tpe' as const,
      patience: '8',
      goodEnough: '-0.5'
    };
    expect(sweepOf(draft).sweep).toEqual({
      array: null,
      values: { lr: '0.1, 0.01' },
      method: 'tpe',
      metric: 'loss',
      goal: null,
      trials: null,
      at_once: 4,
      stop_early: '100',
      patience: 8,
      good_enough: -0.5,
      gpu_hours: 2.5,
      trial_hours: null,
      trial_steps: null
    });
    expect(faultsOfSweep(draft)).toEqual({});
  });

  it('is an array if only task numbers are given', () => {
    const array = { ...NO_SWEEP, array: ' 0-31%4 ', trialHours: '2' };
    expect([isSwept(array), faultsOfSweep(array)]).toEqual([true, {}]);
    expect(sweepOf(array).sweep).toMatchObject({ array: '0-31%4', values: {}, trial_hours: 2 });
    expect(faultsOfSweep({ ...one('lr', '1'), array: '0-3' }).names).toBe(
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
    [
      { ...one('lr', '1'), several: ['lr'] },
      'Sweep: lr has values in its own field. Keep one of them.'
    ]
  ])('reports faults of names', (draft, words) => {
    expect(faultsOfSweep(draft)).toEqual({ names: words });
  });

  it.each([
    [{ trials: '1.5' }, 'Trials: a whole number above 0, or empty.'],
    [{ patience: '0' }, 'Patience: a whole number above 0, or empty.'],
    [{ gpuHours: '-1' }, 'GPU-hours: a number above 0, or empty.'],
    [{ goodEnough: 'x' }, 'Good enough: a number, or empty.']
  ])('reports faults of numbers by field', (part, words) => {
    const [field] = Object.keys(part);
    expect(faultsOfSweep({ ...one('lr', '1'), ...part })).toEqual({ [field!]: words });
  });

  it('takes the values of parameter fields that the user chose', () => {
    const draft = { ...NO_SWEEP, several: ['name', 'empty'] };
    const typed = { name: 'adam, sgd', lr: '1, 2', empty: '' };
    expect(singleOf(draft, typed)).toEqual({ lr: '1, 2' });
    expect(sweepOf(draft, typed).sweep?.values).toEqual({ name: 'adam, sgd' });
    expect(sweepOf(NO_SWEEP, typed)).toEqual({});
  });
});
