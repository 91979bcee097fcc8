import {
  entries,
  isIdle,
  isSweep,
  numberOf,
  stopWords,
  trialState,
  trialWords
} from '../sweepModel';
import type { ISweep, ITrialRow } from '../tokens';
import { job } from './builders';

const row = (more: Partial<ITrialRow>): ITrialRow => ({
  number: 0,
  job: 'a',
  parameters: { lr: 0.01, seed: 2 },
  state: 'open',
  job_state: 'running',
  value: null,
  step: null,
  gpu_hours: 0,
  ...more
});
const sweep = (trials: ITrialRow[], array = false): ISweep =>
  ({ name: 'rates', plan: { metric: 'loss', array }, trials }) as ISweep;

describe('trials of a sweep', () => {
  it('form one entry at the position of the newest trial', () => {
    const trial = (id: string, number: number): ReturnType<typeof job> =>
      job({
        id,
        name: `rates #${number}`,
        trial: { sweep: 's', name: 'rates', trial: number, array: false }
      });
    const jobs = [
      job({ id: 'new' }),
      trial('b', 1),
      job({ id: 'other', name: 'x' }),
      trial('a', 0)
    ];
    const found = entries(jobs);
    expect(found.map(one => (isSweep(one) ? one.name : one.job.id))).toEqual([
      'new',
      'rates',
      'other'
    ]);
    expect(found.find(isSweep)!.trials.map(one => one.id)).toEqual(['b', 'a']);
  });

  it('show values, metric and state', () => {
    expect(trialWords(sweep([]), row({ value: 0.25, step: 40 }))).toBe(
      'lr 0.01, seed 2: loss 0.25 at step 40'
    );
    expect(trialWords(sweep([]), row({}))).toBe('lr 0.01, seed 2');
    const drawn = row({ parameters: { lr: 0.00005480947084664155, steps: 123456 } });
    expect(trialWords(sweep([]), drawn)).toBe('lr 0.00005481, steps 123456');
    expect(trialState(row({ job_state: 'paused' }))).toBe('paused');
    expect(trialState(row({ state: 'stopped-early', job_state: 'succeeded' }))).toBe(
      'stopped early'
    );
  });

  it('are counted before they are stopped', () => {
    expect(stopWords(sweep([row({}), row({ state: 'done' })]))).toBe(
      'No further trial starts, and 1 trial under way ends. Saved files and reported metrics stay.'
    );
    expect(stopWords(sweep([row({}), row({})]))).toContain('2 trials under way end. Saved files');
    expect(stopWords(sweep([row({ state: 'done' })]))).toBe('No further trial starts.');
  });

  it('are all ended while the sweep is idle', () => {
    const state = (of: 'running' | 'over', ...trials: ITrialRow[]): ISweep => ({
      ...sweep(trials),
      state: of
    });
    expect(isIdle(state('running', row({ state: 'done' })))).toBe(true);
    expect(isIdle(state('running', row({ state: 'done' }), row({})))).toBe(false);
    expect([isIdle(state('over', row({ state: 'done' }))), isIdle(null)]).toEqual([false, false]);
  });

  it('are numbered as tasks in an array', () => {
    const task = row({ number: 2, parameters: { array_task_id: 7 } });
    const array = sweep([task], true);
    expect([numberOf(array, task), trialWords(array, task)]).toEqual(['7', '']);
    expect(stopWords(array)).toContain('No further task starts, and 1 task under way ends');
    const trial = { sweep: 's', name: 'folds', trial: 2, array: true };
    expect(entries([job({ id: 'a', trial })])).toMatchObject([{ name: 'folds', array: true }]);
  });
});
