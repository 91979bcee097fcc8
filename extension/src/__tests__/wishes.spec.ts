import { ApiError } from '../api';
import type { AccessAction } from '../api';
import type { IWish } from '../tokens';
import { accessCommand, IAccess, Wishes, wishText } from '../wishes';

const WISH: IWish = {
  user: 'joe',
  project: 'vision',
  at: '2026-11-23T06:00:00Z',
  reason: 'for the paper',
  declined: null,
  decides: false
};

describe('an access request', () => {
  it('shows its requester the deciding users or the reason of the decline', () => {
    expect(wishText(WISH)).toBe(
      'You asked to belong to project vision: its leads or an administrator decide.'
    );
    expect(wishText({ ...WISH, declined: 'full until May' })).toBe(
      'Project vision declined: full until May'
    );
  });

  it('shows a project lead the requester and the reason', () => {
    expect(wishText({ ...WISH, decides: true })).toBe(
      'joe asks to belong to project vision: for the paper'
    );
    expect(wishText({ ...WISH, decides: true, reason: '' })).toBe(
      'joe asks to belong to project vision.'
    );
  });

  it('has a terminal command', () => {
    expect(accessCommand('add_member', { project: 'vision', user: 'ann lee' })).toBe(
      "benchpool access add vision 'ann lee'"
    );
    expect(accessCommand('ask_access', { project: 'vision', reason: '…' })).toBe(
      'benchpool access ask vision --reason …'
    );
  });

  it('leaves the list when granted, and a rejection is thrown', async () => {
    let there = [{ ...WISH, decides: true }];
    const asked: [AccessAction, object][] = [];
    const wishes = new Wishes({
      wishes: () => Promise.resolve(there),
      access: (action, body) => {
        asked.push([action, body]);
        if (action === 'ask_access') {
          return Promise.reject(new ApiError(403, 'is-member', 'You belong to it already.'));
        }
        there = [];
        return Promise.resolve();
      }
    });
    await wishes.refresh();
    expect(wishes.all).toHaveLength(1);
    const whom: IAccess = { project: 'vision', user: 'joe' };
    await wishes.act('add_member', whom);
    expect(wishes.all).toHaveLength(0);
    await expect(wishes.act('ask_access', { project: 'vision' })).rejects.toThrow('already');
    expect(asked).toEqual([
      ['add_member', whom],
      ['ask_access', { project: 'vision' }]
    ]);
    wishes.dispose();
  });
});
