import { HintProgress, Hints, IHintMemory } from '../hints';

/** Return a memory that acts as the settings of one user. */
function memory(): IHintMemory {
  let kept: HintProgress = 'new';
  return {
    read: () => Promise.resolve(kept),
    write: progress => Promise.resolve(void (kept = progress))
  };
}

describe('hints', () => {
  it('are offered once and shown until they are dismissed', async () => {
    const kept = memory();
    const offer = jest.fn();
    const first = new Hints(kept);
    await first.start(offer);
    expect([first.shown, offer.mock.calls.length]).toEqual([true, 1]);

    const later = new Hints(kept);
    await later.start(offer);
    expect([later.shown, offer.mock.calls.length]).toEqual([true, 1]);

    await later.putAway();
    expect(later.shown).toBe(false);
    const afterwards = new Hints(kept);
    await afterwards.start(offer);
    expect([afterwards.shown, offer.mock.calls.length]).toEqual([false, 1]);
  });

  it('are hidden if no memory exists', async () => {
    const hints = new Hints(null);
    await hints.start(() => undefined);
    expect(hints.shown).toBe(false);
  });
});
