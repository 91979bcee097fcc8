import { HIDDEN_MS, followWhileVisible } from '../visible';
import { settle, Wire } from './builders';

function show(visible: boolean): void {
  Object.defineProperty(document, 'hidden', { configurable: true, value: !visible });
  document.dispatchEvent(new Event('visibilitychange'));
}

beforeEach(() => jest.useFakeTimers());
afterEach(() => {
  show(true);
  jest.useRealTimers();
});

describe('a hidden page', () => {
  it('closes its stream after a delay and continues after the last id', async () => {
    const stop = new AbortController();
    const wires: Wire[] = [];
    const asked: (string | null)[] = [];
    const signals: AbortSignal[] = [];
    followWhileVisible({
      open: (after, signal) => {
        asked.push(after);
        signals.push(signal);
        wires.push(new Wire());
        return Promise.resolve(wires[wires.length - 1]!.response);
      },
      onEvent: () => undefined,
      signal: stop.signal
    });
    await settle();
    wires[0]!.event('job', {}, 7);
    await settle();
    show(false);
    await settle(HIDDEN_MS - 1);
    expect(signals[0]!.aborted).toBe(false);
    await settle(1);
    expect(signals[0]!.aborted).toBe(true);
    show(true);
    await settle();
    expect(asked).toEqual([null, '7']);
    stop.abort();
  });

  it('keeps its stream if it is shown again soon', async () => {
    const stop = new AbortController();
    let opened = 0;
    followWhileVisible({
      open: () => {
        opened += 1;
        return Promise.resolve(new Wire().response);
      },
      onEvent: () => undefined,
      signal: stop.signal
    });
    show(false);
    await settle(HIDDEN_MS / 2);
    show(true);
    await settle(HIDDEN_MS / 2);
    expect(opened).toBe(1);
    stop.abort();
  });

  it('does not reopen a stream that has ended', async () => {
    let opened = 0;
    const wire = new Wire();
    followWhileVisible({
      open: () => {
        opened += 1;
        return Promise.resolve(wire.response);
      },
      onEvent: event => event.type !== 'end',
      signal: new AbortController().signal
    });
    await settle();
    wire.event('end', {});
    await settle();
    show(false);
    await settle(HIDDEN_MS);
    show(true);
    await settle();
    expect(opened).toBe(1);
  });
});
