import { follow } from '../stream';
import { settle, Wire } from './builders';

beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

describe('following a stream', () => {
  it('opens anew after its end and goes on after the last id', async () => {
    const wires = [new Wire(), new Wire()];
    const asked: (string | null)[] = [];
    const seen: string[] = [];
    const stop = new AbortController();
    void follow({
      open: after => Promise.resolve(wires[asked.push(after) - 1]!.response),
      onEvent: event => void seen.push(event.data),
      signal: stop.signal
    });
    await settle();
    wires[0]!.event('job', 'one', 41);
    wires[0]!.end();
    await settle(1000);
    wires[1]!.event('job', 'two', 42);
    await settle();
    expect(asked).toEqual([null, '41']);
    expect(seen).toEqual(['"one"', '"two"']);
    stop.abort();
  });

  it('waits longer after each failure in a row, and at once no more when stopped', async () => {
    let opened = 0;
    const failures: string[] = [];
    const stop = new AbortController();
    const following = follow({
      open: () => Promise.reject(new Error(`no ${(opened += 1)}`)),
      onEvent: () => undefined,
      onFailure: error => void failures.push(error.message),
      signal: stop.signal,
      backoff: [100, 1000]
    });
    await settle(150);
    expect(opened).toBe(2);
    await settle(900);
    expect(opened).toBe(2);
    await settle(200);
    expect(opened).toBe(3);
    stop.abort();
    await settle();
    await following;
    expect(failures).toEqual(['no 1', 'no 2', 'no 3']);
  });

  it('takes a silent connection for a dead one', async () => {
    const signals: AbortSignal[] = [];
    const stop = new AbortController();
    void follow({
      open: (_, signal) => Promise.resolve(new Wire().response).finally(() => signals.push(signal)),
      onEvent: () => undefined,
      signal: stop.signal,
      silenceMs: 1000
    });
    await settle(2000);
    expect(signals.length).toBe(2);
    expect(signals[0]!.aborted).toBe(true);
    stop.abort();
  });

  it('ends when the reader wants no more', async () => {
    const wire = new Wire();
    const following = follow({
      open: () => Promise.resolve(wire.response),
      onEvent: event => event.type !== 'end',
      signal: new AbortController().signal
    });
    wire.event('end', {});
    await settle();
    await expect(following).resolves.toBeUndefined();
  });
});
