import { ApiError } from '../api';
import { REST_MS, Sending } from '../sending';
import type { ISchedule, ISendRequest } from '../tokens';
import { job, preparation, settle } from './builders';

const REFUSED = new ApiError(422, 'never-fits', 'It has 8 GPUs.', 'gpus');
const LOST = new ApiError(0, 'unreachable', 'No answer.');

interface ISetup {
  sending: Sending;
  prepared: ISendRequest[];
  keys: string[];
  answers: Error[];
}

function setup(change = {}): ISetup {
  const prepared: ISendRequest[] = [];
  const keys: string[] = [];
  const answers: Error[] = [];
  let made = 0;
  const sending = new Sending({
    api: {
      prepare: request => {
        prepared.push(request);
        return Promise.resolve(preparation(change));
      },
      send: (_, key) => {
        keys.push(key);
        const error = answers.shift();
        return error ? Promise.reject(error) : Promise.resolve(job());
      },
      schedule: (request, key) => {
        prepared.push(request);
        keys.push(key);
        return Promise.resolve({ cron: '0 2 * * *' } as ISchedule);
      }
    },
    subject: { path: 'a.py', kernelName: null, kernelId: null, cells: null },
    kind: 'script',
    memory: null,
    newKey: () => `key-${(made += 1)}`
  });
  return { sending, prepared, keys, answers };
}

beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

describe('sending', () => {
  it('creates one job for a double click', async () => {
    const { sending, keys } = setup();
    const [first, second] = await Promise.all([sending.send(), sending.send()]);
    expect(first).toBe(second);
    expect(await sending.send()).toBe(first);
    expect(keys).toEqual(['key-1']);
  });

  it('keeps its key after a lost answer and renews it after a rejection', async () => {
    const { sending, keys, answers } = setup();
    answers.push(LOST, REFUSED);
    await sending.send();
    await sending.send();
    await sending.send();
    expect(keys).toEqual(['key-1', 'key-1', 'key-2']);
  });

  it('shows the rejection until the answers change', async () => {
    const { sending, answers } = setup();
    answers.push(REFUSED);
    expect(await sending.send()).toBeNull();
    expect(sending.error).toBe(REFUSED);
    expect(sending.sending).toBe(false);
    sending.update({ gpus: 4 });
    expect(sending.error).toBeNull();
  });
});

describe('sending at set times', () => {
  it('creates a schedule instead of a job', async () => {
    const { sending, prepared, keys } = setup();
    sending.update({ schedule: { every: 'night at 2', zone: 'UTC' } });
    expect(await sending.send()).toEqual({ cron: '0 2 * * *' });
    expect(prepared.at(-1)?.schedule).toEqual({ when: 'night at 2', zone: 'UTC' });
    expect(keys).toEqual(['key-1']);
  });
});

describe('preparing', () => {
  it('waits for a pause in the input and sends one request', async () => {
    const { sending, prepared } = setup();
    sending.update({ gpus: 2 });
    sending.update({ gpus: 3 });
    await settle(REST_MS - 1);
    expect(prepared).toHaveLength(0);
    await settle(1);
    expect(prepared.map(request => request.gpus)).toEqual([3]);
  });

  it('is not required before sending', () => {
    expect(setup().sending.ready).toBe(true);
  });

  it('disables Send after a known error', async () => {
    const problem = { level: 'error' as const, text: 'no file', cell: null, line: null };
    const { sending } = setup({ problems: [problem] });
    await sending.prepare();
    expect(sending.ready).toBe(false);
    sending.update({ args: 'x' });
    expect(sending.ready).toBe(true);
  });

  it('sends no request for invalid answers', async () => {
    const { sending, prepared } = setup();
    sending.update({ gpus: NaN });
    await settle(REST_MS);
    expect(prepared).toHaveLength(0);
    expect(sending.ready).toBe(false);
    expect(sending.preparing).toBe(false);
  });
});
