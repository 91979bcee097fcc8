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

describe('a wish to belong to a project', () => {
  it('says to its maker who decides, or why it was declined', () => {
    expect(wishText(WISH)).toBe(
      'You asked to belong to project vision: its leads or an administrator decide.'
    );
    expect(wishText({ ...WISH, declined: 'full until May' })).toBe(
      'Project vision declined: full until May'
    );
  });

  it('says to a lead who asks, and why', () => {
    expect(wishText({ ...WISH, decides: true })).toBe(
      'joe asks to belong to project vision: for the paper'
    );
    expect(wishText({ ...WISH, decides: true, reason: '' })).toBe(
      'joe asks to belong to project vision.'
    );
  });

  it('has the command of the table beside it', () => {
    expect(accessCommand('add_member', { project: 'vision', user: 'ann lee' })).toBe(
      "benchpool access add vision 'ann lee'"
    );
    expect(accessCommand('ask_access', { project: 'vision', reason: '…' })).toBe(
      'benchpool access ask vision --reason …'
    );
  });

  it('is gone from the list when it was granted, and a refusal is thrown', async () => {
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
