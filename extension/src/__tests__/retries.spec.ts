import { begin, remember, toRequest } from '../draft';
import { IF_HANGING, keptRetries, retriesIn, retriesOf } from '../retries';

const NONE = { retries: '', retryOn: '', ifHanging: '' as const };

describe('the action for a hanging job', () => {
  it('is the site default if none is selected', () => {
    expect(retriesOf(NONE)).toEqual({});
    expect(IF_HANGING[0]).toEqual({ value: '', words: 'site default' });
  });

  it('is sent with its command-line value', () => {
    const subject = { path: 'a.py', kernelName: null, kernelId: null, cells: null };
    const draft = { ...begin('script', null), ifHanging: 'requeue' as const };
    expect(toRequest(subject, draft)).toMatchObject({ if_hanging: 'requeue' });
    expect(toRequest(subject, begin('script', null))).not.toHaveProperty('if_hanging');
  });

  it('is remembered, and invalid values are ignored', () => {
    const kept = remember({ ...begin('script', null), ifHanging: 'tell', retries: '2' });
    expect(kept).toMatchObject({ ifHanging: 'tell', retries: '2' });
    expect(begin('script', kept).ifHanging).toBe('tell');
    expect(keptRetries(NONE)).toEqual({});
    expect(retriesIn({ ifHanging: 'explode', retries: 2 })).toEqual(NONE);
  });
});
