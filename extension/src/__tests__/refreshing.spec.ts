import { Refresher } from '../refreshing';

const LEAST_MS = 800;

/** A refresher whose loads take `tookMs`, and the times at which they began. */
function refresher(tookMs: number): { one: Refresher; began: number[] } {
  const began: number[] = [];
  const load = () => {
    began.push(Date.now());
    return new Promise<void>(resolve => setTimeout(resolve, tookMs));
  };
  return { one: new Refresher(load, LEAST_MS), began };
}

beforeEach(() => jest.useFakeTimers({ now: 1_000_000 }));
afterEach(() => jest.useRealTimers());

describe('a refresher', () => {
  it('loads at once, and the last news after the shortest pause', async () => {
    const { one, began } = refresher(10);
    one.want();
    await jest.advanceTimersByTimeAsync(100);
    one.want();
    await jest.advanceTimersByTimeAsync(100);
    one.want();
    await jest.advanceTimersByTimeAsync(10_000);
    expect(began).toEqual([1_000_000, 1_000_000 + LEAST_MS]);
  });

  it('does not load before the last load has ended', async () => {
    const { one, began } = refresher(5000);
    one.want();
    await jest.advanceTimersByTimeAsync(1000);
    one.want();
    await jest.advanceTimersByTimeAsync(3000);
    expect(began).toHaveLength(1);
    await jest.advanceTimersByTimeAsync(60_000);
    expect(began).toHaveLength(2);
  });

  it('repeats slow loads less often', async () => {
    const { one, began } = refresher(1000);
    one.want();
    await jest.advanceTimersByTimeAsync(1500);
    one.want();
    await jest.advanceTimersByTimeAsync(60_000);
    expect(began).toEqual([1_000_000, 1_000_000 + 4000]);
  });

  it('does not load after its end', async () => {
    const { one, began } = refresher(10);
    one.want();
    one.dispose();
    one.want();
    await jest.advanceTimersByTimeAsync(10_000);
    expect(began).toEqual([]);
  });
});
