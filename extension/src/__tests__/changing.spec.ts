import { begin, faults, outcome, workersRule } from '../changing';
import { differing, former } from '../filling';
import { job } from './builders';

const gang = job({ state: 'running', workers: 4, min_workers: 4, gpus: 2 });
const before = begin(gang);

describe('the workers of a job', () => {
  it.each(['queued', 'paused'] as const)('may change while it is %s', state => {
    expect(workersRule({ ...gang, state }, false)).toEqual({
      fixed: false,
      note: 'Processes that train together, each with 2 GPUs.'
    });
  });

  it.each(['starting', 'running'] as const)('stay while a gang is %s, and why is said', state => {
    expect(workersRule({ ...gang, state }, true)).toEqual({
      fixed: true,
      note: 'It runs with all of its 4 workers or none; pause it first.'
    });
    expect(workersRule(job({ state }), true).note).toBe(
      'It runs with its one worker; pause it first.'
    );
  });

  it('stay while a gang leaves its GPUs, and why is said', () => {
    expect(workersRule({ ...gang, state: 'pausing' }, true).note).toBe(
      'It leaves its GPUs now; change its workers when it waits.'
    );
  });

  it('come and go while an elastic job runs', () => {
    expect(workersRule(gang, false).note).toBe(
      'More come when there is room; the last ones go at once.'
    );
  });
});

describe('the answers', () => {
  it('that differ are what is sent, and none is sent where none does', () => {
    expect(differing(before, begin(gang))).toBeNull();
    expect(differing(before, { priority: 80, workers: 4 })).toEqual({ priority: 80 });
    expect(differing(before, { priority: 50, workers: 2 })).toEqual({ workers: 2 });
    expect(differing(before, { priority: 0, workers: 1 })).toEqual({ priority: 0, workers: 1 });
  });

  it.each([
    [{ priority: 1000, workers: 4096 }, []],
    [{ priority: -1, workers: 1 }, ['priority']],
    [{ priority: 0, workers: 0 }, ['workers']],
    [{ priority: NaN, workers: 1.5 }, ['priority', 'workers']]
  ])('%j have faults at %j', (answers, fields) => {
    expect(Object.keys(faults(answers))).toEqual(fields);
  });
});

describe('a change', () => {
  it('is taken back for the same fields', () => {
    expect(former(before, { priority: 0 })).toEqual({ priority: 50 });
    expect(former(before, { workers: 2 })).toEqual({ workers: 4 });
  });

  it.each([
    [{ priority: 80 }, '“resnet” has priority 80 now.'],
    [{ workers: 4 }, '“resnet” is to have 4 workers.'],
    [{ priority: 0, workers: 1 }, '“resnet” has priority 0 now and is to have 1 worker.']
  ])('%j reads %s', (wanted, words) => {
    expect(outcome(gang, wanted)).toBe(words);
  });
});
