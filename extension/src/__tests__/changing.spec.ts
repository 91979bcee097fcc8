import { advised, CHANGE, outcome, remarks, staying } from '../changing';
import * as examples from '../../../tests/phrases.json';
import { PATTERN } from '../durations';
import { asked, differing, former, present } from '../filling';
import { CHANGEABLE } from '../generated/actions';
import { job } from './builders';

const gang = job({ state: 'running', workers: 4, min_workers: 4, gpus: 2 });
const before = present(CHANGE, gang);

describe('the change dialog', () => {
  it('shows each changeable field with its current value', () => {
    expect(Object.keys(before)).toEqual(CHANGEABLE.map(row => row.name));
    expect(before).toMatchObject({ priority: 50, workers: 4, gpus: 2, time_limit_s: '' });
  });

  it.each(['starting', 'running'] as const)(
    'explains why the workers of a %s gang are fixed',
    state => {
      expect(staying({ ...gang, state }, ['workers', 'gpus'])).toEqual({
        workers: 'The job runs with all of its 4 workers or none. Pause it first.',
        gpus: 'This can change only while the job waits. Pause it first.'
      });
      expect(staying(job({ state }), ['workers']).workers).toBe(
        'The job runs with exactly 1 worker. Pause it first.'
      );
    }
  );

  it('reports that a pausing job leaves its GPUs', () => {
    expect(staying({ ...gang, state: 'pausing' }, ['workers']).workers).toBe(
      'The job is leaving its GPUs. Change this when it waits.'
    );
  });

  it('explains the effect of more workers', () => {
    expect(remarks(gang).workers).toBe(
      'Added workers start when GPUs are free; the last workers are removed at once.'
    );
    expect(remarks({ ...gang, state: 'queued' }).workers).toBe(
      'Processes that train together, each with 2 GPUs.'
    );
  });
});

describe('the fields of the change dialog', () => {
  it('are sent only if they differ', () => {
    expect(differing(before, { ...before })).toBeNull();
    expect(differing(before, { ...before, time_limit_s: NaN })).toBeNull();
    expect(differing(before, { ...before, priority: 80 })).toEqual({ priority: 80 });
  });

  it('accept a time limit in the format of the command line', () => {
    const limited = present(CHANGE, { ...gang, time_limit_s: 5400 });
    expect(limited.time_limit_s).toBe('1h30m');
    expect(differing(limited, { ...limited })).toBeNull();
    expect(asked(CHANGE, { time_limit_s: '2h' })).toEqual({ time_limit_s: 7200 });
    expect(asked(CHANGE, former(limited, { time_limit_s: 7200 }))).toEqual({ time_limit_s: 5400 });
    const fits = new RegExp(`^(?:${PATTERN})$`);
    for (const [text, seconds] of examples.times_read) {
      expect([text, fits.test(String(text))]).toEqual([text, seconds !== null]);
    }
  });

  it('request no change if they are empty', () => {
    expect(asked(CHANGE, { priority: 80, time_limit_s: NaN })).toEqual({ priority: 80 });
  });
});

describe('a change', () => {
  it('is undone with the former values of the same fields', () => {
    expect(former(before, { priority: 0 })).toEqual({ priority: 50 });
    expect(former(before, { workers: 2 })).toEqual({ workers: 4 });
  });

  it.each([
    [{ priority: 80 }, '“resnet” has new settings: priority 80.'],
    [{ workers: 4 }, '“resnet” has new settings: 4 workers.'],
    [{ gpus: 1, time_limit_s: 5400 }, '“resnet” has new settings: 1 GPU, time limit 1 h 30 min.'],
    [{ project: 'joe' }, '“resnet” has new settings: project joe.']
  ])('of %j is reported as %s', (wanted, words) => {
    expect(outcome(gang, wanted)).toBe(words);
  });
});

describe('the changes that a reason suggests', () => {
  const reason = { code: 'pool-full', text: '', numbers: { would_start_with: 2 }, remedy: '' };
  const waiting = job({ state: 'queued', gpus: 4, reason, actions: ['change'] });

  it('are offered while the job waits and can be changed', () => {
    expect(advised(waiting)).toEqual([
      { name: 'gpus', wanted: { gpus: 2 }, label: 'Start with 2 GPUs' }
    ]);
    expect(advised({ ...waiting, workers: 3 })[0]?.label).toBe('Start with 2 GPUs for each worker');
    const shorter = { ...reason, numbers: { would_start_limited_to: 5400 } };
    expect(advised({ ...waiting, reason: shorter })).toEqual([
      { name: 'time_limit_s', wanted: { time_limit_s: 5400 }, label: 'End it after 1 h 30 min' }
    ]);
    expect(advised({ ...waiting, state: 'running' })).toEqual([]);
    expect(advised({ ...waiting, actions: [] })).toEqual([]);
    expect(advised({ ...waiting, reason: null })).toEqual([]);
  });
});
