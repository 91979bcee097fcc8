import { begin, toRequest } from '../draft';
import { clockTime, createdText, isSchedule, noSchedule, scheduleOf } from '../scheduleDraft';
import type { ISchedule } from '../tokens';
import { job } from './builders';

const NIGHTLY = {
  name: 'train',
  cron: '0 2 * * *',
  zone: 'Asia/Tokyo',
  next: ['2026-11-24T02:00:00+09:00']
} as ISchedule;

describe('a schedule in the dialog', () => {
  it('begins with the time zone of the reader and is absent without times', () => {
    const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
    expect(noSchedule()).toEqual({ every: '', zone: timeZone });
    expect(scheduleOf(noSchedule())).toEqual({});
  });

  it('is sent with its times and zone', () => {
    const draft = { ...begin('script', null), schedule: { every: ' night at 2 ', zone: ' ' } };
    const subject = { path: 'a.py', kernelName: null, kernelId: null, cells: null };
    expect(toRequest(subject, draft).schedule).toEqual({ when: 'night at 2', zone: 'UTC' });
  });

  it('shows times on the clock of its zone', () => {
    expect(clockTime('2026-11-24T02:00:00+09:00')).toBe('Tue 24 Nov 02:00');
    expect(createdText(NIGHTLY)).toBe(
      '“train” is scheduled. It is sent first on Tue 24 Nov 02:00 (Asia/Tokyo).'
    );
    expect(createdText({ ...NIGHTLY, next: [] })).toBe('“train” is scheduled.');
  });

  it('differs from a job', () => {
    expect([isSchedule(NIGHTLY), isSchedule(job())]).toEqual([true, false]);
  });
});
