import { ApiError } from '../api';
import type { AccessAction } from '../api';
import type { IAccessRequest } from '../tokens';
import { accessCommand, IAccess, AccessRequests, accessRequestText } from '../accessRequests';

const REQUEST: IAccessRequest = {
  user: 'joe',
  project: 'vision',
  at: '2026-11-23T06:00:00Z',
  reason: 'for the paper',
  declined: null,
  decides: false
};

describe('an access request', () => {
  it('shows its requester the deciding users or the reason of the decline', () => {
    expect(accessRequestText(REQUEST)).toBe(
      'You requested access to project vision. Its leads or an administrator decide.'
    );
    expect(accessRequestText({ ...REQUEST, declined: 'full until May' })).toBe(
      'Project vision declined: full until May'
    );
  });

  it('shows a project lead the requester and the reason', () => {
    expect(accessRequestText({ ...REQUEST, decides: true })).toBe(
      'joe requests access to project vision: for the paper'
    );
    expect(accessRequestText({ ...REQUEST, decides: true, reason: '' })).toBe(
      'joe requests access to project vision.'
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
    let there = [{ ...REQUEST, decides: true }];
    const asked: [AccessAction, object][] = [];
    const accessRequests = new AccessRequests({
      accessRequests: () => Promise.resolve(there),
      access: (action, body) => {
        asked.push([action, body]);
        if (action === 'ask_access') {
          return Promise.reject(new ApiError(403, 'is-member', 'You belong to it already.'));
        }
        there = [];
        return Promise.resolve();
      }
    });
    await accessRequests.refresh();
    expect(accessRequests.all).toHaveLength(1);
    const whom: IAccess = { project: 'vision', user: 'joe' };
    await accessRequests.act('add_member', whom);
    expect(accessRequests.all).toHaveLength(0);
    await expect(accessRequests.act('ask_access', { project: 'vision' })).rejects.toThrow(
      'already'
    );
    expect(asked).toEqual([
      ['add_member', whom],
      ['ask_access', { project: 'vision' }]
    ]);
    accessRequests.dispose();
  });
});
