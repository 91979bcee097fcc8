import { Api, ApiError, NO_EXTENSION } from '../api';
import { JobsModel } from '../model';
import type { IJob } from '../tokens';
import { at, job, quota, settle, status, Wire } from './builders';

const A = 'a'.repeat(26);
const B = 'b'.repeat(26);

/** Pool whose answers are set by the test. */
class Pool {
  jobs: IJob[] = [job({ id: A })];
  down = false;
  wire = new Wire();
  asked: string[] = [];

  readonly api = {
    jobs: (all: boolean) => this._answer(`jobs ${all}`, this.jobs),
    job: (id: string) => this._one(id),
    quota: () => this._answer('quota', quota()),
    status: () => this._answer('status', status()),
    act: (id: string, verb: string) =>
      this._answer(`${verb} ${id}`, { ...this.jobs[0]!, state: 'pausing' as const }),
    fill: (id: string, action: string, wanted: object) =>
      this._answer(`${action} ${id}`, { ...this.jobs[0]!, ...wanted }),
    events: (after: string | null) => {
      this.wire = new Wire();
      return this._answer(`events ${after}`, this.wire.response);
    }
  };

  model(): JobsModel {
    return new JobsModel(this.api as unknown as Api);
  }

  private _one(id: string): Promise<unknown> {
    const found = this.jobs.find(one => one.id === id);
    this.asked.push(`job ${id}`);
    return found
      ? Promise.resolve({ job: found, attempts: [] })
      : Promise.reject(new ApiError(404, 'not-found', 'There is no such job.'));
  }

  private _answer<T>(what: string, value: T): Promise<T> {
    this.asked.push(what);
    return this.down
      ? Promise.reject(new ApiError(503, 'unavailable', 'The scheduler does not answer.'))
      : Promise.resolve(value);
  }
}

let pool: Pool;
let model: JobsModel;

beforeEach(async () => {
  jest.useFakeTimers();
  pool = new Pool();
  model = pool.model();
  model.start();
  await settle(100);
});

afterEach(() => {
  model.dispose();
  jest.useRealTimers();
});

describe('the list of jobs', () => {
  it('is loaded after the stream is open', () => {
    expect(model.jobs.map(one => one.id)).toEqual([A]);
    expect(model.connection).toEqual({ state: 'live', text: '' });
    expect(pool.asked[0]).toBe('events null');
  });

  it('follows events, newest first, and emits each state change once', async () => {
    const changes: string[] = [];
    const follow = (_: unknown, change: { job: IJob; previous: IJob | null }) =>
      changes.push(`${change.previous?.state ?? 'new'} -> ${change.job.state}`);
    model.jobChanged.connect(follow);
    pool.wire.event('job', job({ id: B, state: 'queued', submitted: at(0) }), 1);
    pool.wire.event('job', job({ id: B, state: 'running', submitted: at(0) }), 2);
    pool.wire.event('job', job({ id: B, state: 'running', submitted: at(0) }), 3);
    await settle(100);
    expect(model.jobs.map(one => one.id)).toEqual([B, A]);
    expect(changes).toEqual(['new -> queued', 'queued -> running']);
  });

  it('updates the widgets once for many events', async () => {
    let changes = 0;
    const onChanged = () => (changes += 1);
    model.changed.connect(onChanged);
    for (let i = 1; i <= 50; i += 1) {
      pool.wire.event('job', job({ id: A, attempt: i }), i);
    }
    await settle(100);
    expect(changes).toBe(1);
  });

  it('removes a deleted job and reloads on reset', async () => {
    pool.wire.event('deleted', { id: A }, 1);
    await settle(100);
    expect(model.jobs).toEqual([]);
    pool.wire.event('reset', {}, 2);
    await settle(100);
    expect(model.jobs.map(one => one.id)).toEqual([A]);
  });

  it('shows jobs of all users only in scope "all"', async () => {
    pool.wire.event('job', job({ id: B, user: 'joe' }), 1);
    await settle(100);
    expect(model.jobs.map(one => one.id)).toEqual([A]);
    pool.jobs = [job({ id: A }), job({ id: B, user: 'joe' })];
    await model.setScope('all');
    expect(model.jobs).toHaveLength(2);
    expect(pool.asked).toContain('jobs true');
  });

  it('takes the pool status from its event', async () => {
    pool.wire.event('pool', { text: '8 of 8 GPUs work.', running: 2 }, 1);
    await settle(100);
    expect(model.status).toMatchObject({ text: '8 of 8 GPUs work.', simulated: true });
  });
});

describe('an outage', () => {
  it('is shown with the message of the service and ends without a reload', async () => {
    pool.down = true;
    pool.wire.end();
    await settle(1000);
    expect(model.connection).toEqual({
      state: 'degraded',
      text: 'The scheduler does not answer.'
    });
    expect(model.jobs).toHaveLength(1);
    pool.down = false;
    pool.jobs = [job({ id: A, state: 'succeeded', ended: at(0) })];
    await settle(10_000);
    expect(model.connection.state).toBe('live');
    expect(model.jobs[0]!.state).toBe('succeeded');
  });
});

describe('a server without the server extension', () => {
  it('is reported once and not retried', async () => {
    model.dispose();
    pool.asked = [];
    const missing = new ApiError(404, NO_EXTENSION, 'This server has no extension.');
    const ask = (what: string) => () => {
      pool.asked.push(what);
      return Promise.reject(missing);
    };
    Object.assign(pool.api, { events: ask('events'), jobs: ask('jobs'), quota: ask('quota') });
    model = pool.model();
    model.start();
    await settle(60_000);
    expect(pool.asked).toEqual(['events']);
    expect(model.connection).toMatchObject({ state: 'degraded', text: missing.message });
  });
});

describe('a single job', () => {
  it('outside the list is requested once', async () => {
    pool.jobs.push(job({ id: B, user: 'joe' }));
    expect(model.known(B)).toBe('loading');
    expect(model.known(B)).toBe('loading');
    await settle(100);
    expect(model.known(B)).toMatchObject({ id: B });
    expect(pool.asked.filter(what => what === `job ${B}`)).toHaveLength(1);
  });

  it('that is not visible is hidden and not requested again', async () => {
    model.known(B);
    await settle(100);
    expect(model.known(B)).toBe('hidden');
    expect(pool.asked.filter(what => what === `job ${B}`)).toHaveLength(1);
  });

  it('keeps an event that arrives before the answer of an action', async () => {
    const acting = model.act(A, 'pause');
    model.accept(job({ id: A, state: 'paused' }));
    await acting;
    expect(model.job(A)!.state).toBe('paused');
  });

  it('takes the answer of an action if no event was earlier', async () => {
    await model.act(A, 'pause');
    expect(model.job(A)!.state).toBe('pausing');
  });

  it('takes the answer of a change if no event was earlier', async () => {
    await model.fill(A, 'change', { priority: 80 });
    expect(model.job(A)!.priority).toBe(80);
    const changing = model.fill(A, 'change', { priority: 90 });
    model.accept(job({ id: A, priority: 20 }));
    await changing;
    expect(model.job(A)!.priority).toBe(20);
  });
});
