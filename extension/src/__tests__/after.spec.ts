import { afterFact, mayRunAfter } from '../after';
import { begin, remember, toRequest } from '../draft';
import { job } from './builders';

const prep = { job: 'p'.repeat(26), name: 'prep', outcome: 'succeeded' as const, tasks: 0 };
const fit = { job: 'f'.repeat(26), name: '', outcome: null, tasks: 0 };
const folds = { job: 'a'.repeat(26), name: 'folds', outcome: null, tasks: 32 };

describe('a job that runs after other jobs', () => {
  it('lists these jobs in its facts', () => {
    expect(afterFact(job({ awaits: [prep, fit] }))).toBe(' · after prep (succeeded), ffffffff');
    expect(afterFact(job({ awaits: [folds] }))).toBe(' · after array folds');
    expect(afterFact(job())).toBe('');
  });

  it('can follow jobs and arrays that have not ended', () => {
    const jobs = [job({ id: 'runs' }), job({ id: 'over', state: 'failed' })];
    expect(mayRunAfter(jobs).map(({ id }) => id)).toEqual(['runs']);
    const task = (id: string, number: number): ReturnType<typeof job> =>
      job({ id, trial: { sweep: 'folds-id', name: 'folds', trial: number, array: true } });
    expect(mayRunAfter([task('a', 0), ...jobs, task('b', 1)])).toMatchObject([
      { id: 'folds-id', name: 'array folds', state: '2 under way' },
      { id: 'runs' }
    ]);
  });

  it('sends their ids and does not remember them', () => {
    const subject = { path: 'train.py', kernelName: null, cells: null };
    const draft = { ...begin('script', null), after: ['a1'], afterAny: true };
    expect(toRequest(subject, draft)).toMatchObject({ after: ['a1'], after_any: true });
    expect(toRequest(subject, { ...draft, after: [] })).not.toHaveProperty('after_any');
    expect(begin('script', remember(draft)).after).toEqual([]);
  });
});
