import { follow } from '../stream';
import { settle, Wire } from './builders';

beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

describe('a followed stream', () => {
  it('reconnects after its end and continues after the last id', async () => {
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

  it('waits longer after each failure and stops at once when aborted', async () => {
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

  it('is reopened after a silent period', async () => {
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

  it('yields the same events for all chunk sizes', async () => {
    const bytes = new TextEncoder().encode(
      ': beat\n\nid: 7\nevent: job\ndata: {"a":"é"}\n\ndata: two\ndata: lines\n\nevent: x\n\nid: 9\r\ndata:no space\r\n\r\n\n'
    );
    for (let width = 1; width <= bytes.length; width += 1) {
      const wire = new Wire();
      const seen: [string, string][] = [];
      const asked: (string | null)[] = [];
      const stop = new AbortController();
      void follow({
        open: after => Promise.resolve(asked.push(after) > 1 ? new Wire().response : wire.response),
        onEvent: event => void seen.push([event.type, event.data]),
        signal: stop.signal
      });
      for (let i = 0; i < bytes.length; i += width) {
        wire.bytes(bytes.slice(i, i + width));
      }
      wire.end();
      await settle(1000);
      stop.abort();
      expect(seen).toEqual([
        ['job', '{"a":"é"}'],
        ['message', 'two\nlines'],
        ['message', 'no space']
      ]);
      expect(asked).toEqual([null, '9']);
    }
  });

  it('keeps the last id across events without an id', async () => {
    const wire = new Wire();
    const asked: (string | null)[] = [];
    const stop = new AbortController();
    void follow({
      open: after => Promise.resolve(asked.push(after) > 1 ? new Wire().response : wire.response),
      onEvent: () => undefined,
      signal: stop.signal,
      after: '3'
    });
    wire.event('pool', {});
    wire.event('job', {}, 4);
    wire.event('pool', {});
    wire.end();
    await settle(1000);
    stop.abort();
    expect(asked).toEqual(['3', '4']);
  });

  it('ends when a callback returns false', async () => {
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
