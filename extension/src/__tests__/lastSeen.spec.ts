import { StateDB } from '@jupyterlab/statedb';
import { LastSeen } from '../lastSeen';

describe('LastSeen', () => {
  beforeEach(() => localStorage.clear());

  it('is 0 on the first page', async () => {
    expect(await new LastSeen(new StateDB(), localStorage, '/user/nora/').at()).toBe(0);
    expect(await new LastSeen(null, localStorage, '/user/nora/').at()).toBe(0);
  });

  it('is available to its user in this browser at once', async () => {
    await new LastSeen(null, localStorage, '/user/nora/').mark(2000);
    expect(await new LastSeen(new StateDB(), localStorage, '/user/nora/').at()).toBe(2000);
    expect(await new LastSeen(new StateDB(), localStorage, '/user/omar/').at()).toBe(0);
  });

  it('follows the user to another browser', async () => {
    const state = new StateDB();
    await new LastSeen(state, localStorage, '/user/nora/').mark(3000);
    localStorage.clear();
    expect(await new LastSeen(state, localStorage, '/user/nora/').at()).toBe(3000);
  });
});
