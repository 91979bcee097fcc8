import { StateDB } from '@jupyterlab/statedb';
import { Signal } from '@lumino/signaling';
import type { JobsModel } from '../model';
import { Notices } from '../notices';
import type { IJob, IJobChange } from '../tokens';
import { job } from './builders';

const mockShown: string[] = [];
jest.mock('@jupyterlab/apputils', () => {
  const add = (text: string) => mockShown.push(text);
  return { Notification: { success: add, info: add, error: add } };
});

/** The part of the job list that `Notices` uses. */
class ListedJobs {
  readonly jobChanged = new Signal<this, IJobChange>(this);
  readonly changed = new Signal<this, void>(this);
  readonly loaded = true;
  readonly connection = { state: 'live' };
  mine: readonly IJob[] = [];
  sweep: object = {};
  readonly api = { sweep: () => Promise.resolve(this.sweep) };
  isMine(): boolean {
    return true;
  }
}

function page(state: StateDB): ListedJobs {
  const jobs = new ListedJobs();
  const model = jobs as unknown as JobsModel;
  new Notices({ model, state, server: '/user/nora/', show: jest.fn(), failure: jest.fn() });
  return jobs;
}

const settled = () => new Promise(resolve => setTimeout(resolve, 0));
const RUNNING = job({ state: 'running', name: 'train' });
const ENDED = { ...RUNNING, state: 'succeeded' as const, ended: new Date().toISOString() };

describe('Notices', () => {
  beforeEach(() => {
    localStorage.clear();
    mockShown.length = 0;
  });

  it('report the end of a job once', () => {
    const jobs = page(new StateDB());
    jobs.jobChanged.emit({ job: ENDED, previous: RUNNING });
    jobs.jobChanged.emit({ job: { ...ENDED, name: 'renamed' }, previous: ENDED });
    expect(mockShown).toEqual([expect.stringContaining('“train” has succeeded after')]);
  });

  it('do not repeat an end after the page was reopened', async () => {
    localStorage.setItem('@benchpool/lab:seen:/user/nora/', '1');
    page(new StateDB()).jobChanged.emit({ job: ENDED, previous: RUNNING });
    mockShown.length = 0;
    const opened = page(new StateDB());
    opened.mine = [ENDED];
    opened.changed.emit();
    await settled();
    expect(mockShown).toEqual([]);
  });

  it('report jobs that ended while no page was open', async () => {
    localStorage.setItem('@benchpool/lab:seen:/user/nora/', '1');
    const opened = page(new StateDB());
    opened.mine = [ENDED];
    opened.changed.emit();
    await settled();
    expect(mockShown).toEqual(['While you were away: “train” has succeeded.']);
  });

  it('report a sweep once, after its last trial', async () => {
    const jobs = page(new StateDB());
    const trial = (id: string, number: number): IJob => ({
      ...RUNNING,
      id,
      trial: { sweep: 's', name: 'rates', trial: number }
    });
    const end = (one: IJob): void =>
      jobs.jobChanged.emit({
        job: { ...one, state: 'succeeded', ended: ENDED.ended },
        previous: one
      });
    const rows = [
      { number: 0, job: 'a', state: 'done' },
      { number: 1, job: 'b', state: 'open' }
    ];
    jobs.sweep = { name: 'rates', text: '2 of 2.', state: 'running', best: 0, trials: rows };
    end(trial('a', 0));
    await settled();
    expect(mockShown).toEqual([]);
    jobs.sweep = {
      ...jobs.sweep,
      state: 'ending',
      trials: rows.map(row => ({ ...row, state: 'done' }))
    };
    end(trial('b', 1));
    end(trial('b', 1));
    await settled();
    expect(mockShown).toEqual(['Sweep “rates” has ended. 2 of 2.']);
  });
});
