import { countCleared, EVERYTHING, grouped, narrowed } from '../narrowing';
import { job } from './builders';

describe('the filter of the list', () => {
  const runs = job({ id: 'runs', name: 'resnet-lr', user: 'susan', state: 'running' });
  const failed = job({
    id: 'fell',
    name: 'Ablation',
    project: 'joe',
    user: 'joe',
    state: 'failed',
    tags: ['paper'],
    ended: '2026-11-22T10:00:00Z'
  });
  const all = [runs, failed];
  const ids = (by: object): string[] =>
    narrowed(all, { ...EVERYTHING, ...by }).map(each => each.id);

  it('finds all words in name, id, user, project and labels, ignoring case', () => {
    expect(ids({ search: '' })).toEqual(['runs', 'fell']);
    expect(ids({ search: 'ABLA paper' })).toEqual(['fell']);
    expect(ids({ search: ' susan  lr ' })).toEqual(['runs']);
    expect(ids({ search: 'susan paper' })).toEqual([]);
  });

  it('selects groups of states', () => {
    expect(ids({ states: 'live' })).toEqual(['runs']);
    expect(ids({ states: 'ended' })).toEqual(['fell']);
    expect(ids({ states: 'failed' })).toEqual(['fell']);
  });

  it('hides cleared jobs and counts them', () => {
    const at = Date.parse('2026-11-22T10:00:00Z');
    expect(ids({ clearedAt: at })).toEqual(['runs']);
    expect(ids({ clearedAt: at - 1 })).toEqual(['runs', 'fell']);
    expect(countCleared(all, at)).toBe(1);
    expect(countCleared(all, 0)).toBe(0);
  });
});

describe('groups of equal jobs', () => {
  const sent = (id: string, more: object): ReturnType<typeof job> =>
    job({ id, name: 'train', user: 'susan', ...more });

  it('show the newest job with earlier ended jobs below', () => {
    const [now, again, first] = [
      sent('c', { state: 'running' }),
      sent('b', { state: 'failed' }),
      sent('a', { state: 'failed' })
    ];
    expect(grouped([now, again, first])).toEqual([{ job: now, earlier: [again, first] }]);
  });

  it('exclude jobs that have not ended and jobs of another user', () => {
    const jobs = [
      sent('c', { state: 'running' }),
      sent('b', { state: 'queued' }),
      sent('a', { state: 'failed', user: 'joe' })
    ];
    expect(grouped(jobs).map(group => group.earlier.length)).toEqual([0, 0, 0]);
  });
});
