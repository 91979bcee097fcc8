import * as format from '../format';
import { at, job, NOW, quota } from './builders';
import type { IPreemption } from '../tokens';

describe('ages', () => {
  it('below five seconds or in the future read "just now"', () => {
    expect(format.age(at(0), NOW)).toBe('just now');
    expect(format.age(at(1), NOW)).toBe('just now');
    expect(format.age(at(-12), NOW)).toBe('12 min ago');
  });
});

describe('start estimates', () => {
  it('omit the text about the container', () => {
    const container = { image: 'lab/nb:1', home: false, text: 'It runs in lab/nb:1; no home.' };
    const text = 'Starts now; 2 GPUs within quota. It runs in lab/nb:1; no home.';
    expect(format.startText({ text, container })).toBe('Starts now; 2 GPUs within quota.');
    expect(format.startText({ text: 'Starts now.', container: null })).toBe('Starts now.');
  });

  it.each([
    [{ earliest: at(5), likely: at(8), latest: at(12) }, 'in 5–12 min'],
    [{ earliest: null, likely: at(7), latest: null }, 'in about 7 min']
  ])('of %j are shown as %s', (estimate, words) => {
    expect(format.startRange(estimate, NOW)).toBe(words);
  });

  it('are one range with its basis', () => {
    const estimate = { earliest: at(5), likely: at(8), latest: at(12) };
    const basis = 'learned from 14 runs of yours';
    expect(format.startSentence({ ...estimate, basis }, NOW)).toBe(`in 5–12 min, ${basis}`);
    expect(format.startSentence({ ...estimate, basis: null }, NOW)).toBe('in 5–12 min');
    expect(format.startSentence(null, NOW)).toBeNull();
  });

  it('are null if nothing is known', () => {
    expect(format.startRange(null, NOW)).toBeNull();
    expect(format.startRange({ earliest: null, likely: null, latest: null }, NOW)).toBeNull();
  });
});

describe('numbers', () => {
  it('of bytes have a unit', () => {
    expect([0, 999, 1000, 2_100_000, 14_000_000].map(format.size)).toEqual([
      '0 B',
      '999 B',
      '1.0 kB',
      '2.1 MB',
      '14 MB'
    ]);
  });

  it('are joined to ranges', () => {
    expect(format.ranges([4, 1, 2, 7, 6, 6])).toBe('1-2, 4, 6-7');
    expect(format.ranges([])).toBe('');
  });
});

describe('texts about a job', () => {
  it('offer the actions of the scheduler, and "again" for an ended job', () => {
    const open = job({ state: 'pausing', actions: ['resume', 'cancel', 'change'] });
    expect(format.rowActions(open)).toEqual(['resume', 'cancel']);
    expect(format.rowActions(job({ actions: [] }))).toEqual([]);
    expect(format.rowActions(job({ state: 'failed', actions: ['rename'] }))).toEqual(['again']);
  });

  it('name the run time and GPUs that a cancellation loses', () => {
    expect(format.lossOf(job(), at(-20), NOW)).toContain('20 min on 4 GPUs.');
    expect(format.lossOf(job({ attempt: 2 }), at(-3), NOW)).toContain(
      '3 min on 4 GPUs in attempt 2'
    );
  });

  it('name the run time, wait or total time of a row', () => {
    expect(format.timing(job(), NOW)).toBe('for 20 min');
    expect(format.timing(job({ attempt: 2 }), NOW)).toBe('first started 20 min ago');
    expect(format.timing(job({ state: 'queued' }), NOW)).toBe('sent 30 min ago');
    expect(format.timing(job({ state: 'succeeded', ended: at(-5) }), NOW)).toBe(
      '15 min, ended 5 min ago'
    );
    expect(format.timing(job({ state: 'cancelled', started: null, ended: at(-5) }), NOW)).toBe(
      'ended 5 min ago'
    );
  });

  it('name the claimant, rule and cost of a pause, or its requester and reason', () => {
    const known = pause({ cost: '8 min of one GPU (estimate)' });
    expect(format.pauseLine(known, NOW)).toBe(
      'paused 10 min ago for joe (rule R15); progress lost: 8 min of one GPU (estimate)'
    );
    const asked = pause({ by: 'ada', reason: 'new driver', cost: '2 s of one GPU' });
    expect(format.pauseLine({ ...asked, resumed_at: at(-2) }, NOW)).toBe(
      'paused 10 min ago by ada: new driver; progress lost: 2 s of one GPU; resumed 2 min ago'
    );
  });

  it('describe the three stages of a pause', () => {
    const text = 'jemma needs 2 GPUs: saving';
    const until = new Date(NOW + 24_000).toISOString();
    expect(format.pauseText({ stage: 'saving', text, at: at(0), until }, NOW)).toBe(
      `${text}, 24 s left`
    );
    const back = { stage: 'back' as const, text: 'back: attempt 2', at: at(-4), until: null };
    expect(format.pauseText(back, NOW)).toBe('back: attempt 2');
    expect(format.pauseText({ ...back, at: at(-6) }, NOW)).toBe('');
    expect(format.pauseText(null, NOW)).toBe('');
  });

  it('name the cause of the end of an attempt', () => {
    const attempt = {
      attempt: 1,
      started: at(-9),
      ended: at(-1),
      exit_code: 1,
      ended_by: 'itself',
      gpus: [],
      nodes: []
    };
    expect(format.endedBy(attempt)).toBe('ended by itself, exit code 1');
    expect(format.endedBy({ ...attempt, exit_code: null, ended_by: 'preempt' })).toBe(
      'paused for others'
    );
    expect(format.endedBy({ ...attempt, ended: null })).toBe('running');
  });

  it('announce the reason of a waiting job', () => {
    const reason = { code: 'quota', text: '2 GPUs: 1 free', numbers: {}, remedy: '' };
    expect(format.announcement(job({ state: 'queued', reason }))).toBe(
      'resnet is queued: 2 GPUs: 1 free'
    );
  });
});

describe('use and quota', () => {
  it("count only the user's jobs and bench GPUs in the status bar", () => {
    const jobs = [
      job(),
      job({ state: 'starting' }),
      job({ state: 'queued' }),
      job({ user: 'joe' })
    ];
    expect(format.statusLine(quota(), jobs)).toBe('bench 1/2 · train 2 running, 1 waiting');
    expect(format.statusLine(null, [])).toBe('train 0 running, 0 waiting');
  });

  it('show the use of a project beside its guaranteed quota', () => {
    const [project] = quota().projects;
    expect(format.quotaLine({ ...project!, limit: 4, waiting: 1 })).toBe(
      '2 GPUs held, 2 guaranteed, at most 4, 1 waiting'
    );
    expect(format.quotaLine({ ...project!, quota: null })).toContain('without limit');
    const hours = { used: 7, soft: null, hard: 9, renewed: at(0), text: '7.0 of 9 GPU-hours' };
    expect(format.quotaLine({ ...project!, gpu_hours: hours })).toBe(
      '2 GPUs held, 2 guaranteed; 7.0 of 9 GPU-hours'
    );
  });
});

function pause(change: Partial<IPreemption>): IPreemption {
  return {
    at: at(-10),
    for: 'joe',
    rule: 'R15',
    lost_gpu_s: 480,
    resumed_at: null,
    ended_at: null,
    unsaved_gpu_s: null,
    restart_gpu_s: null,
    saved_at: null,
    saved_step: null,
    by: null,
    reason: '',
    cost: '',
    ...change
  };
}

describe('a bench with a reclaim request', () => {
  const held = { server: 'paper', gpus: ['GPU-1'] };

  it('names the administrator, the reason and the remedy', () => {
    const reclaim_request = { by: 'ada', at: at(-3), reason: 'two users wait' };
    expect(format.reclaimRequestText({ ...held, reclaim_request }, NOW)).toBe(
      'ada asks you to release 1 GPU of server “paper”, 3 min ago: two users wait. ' +
        'Save your work, then stop the server: File, Hub Control Panel.'
    );
    expect(format.reclaimRequestText({ ...held, reclaim_request: null }, NOW)).toBeNull();
  });
});

describe('times', () => {
  it('of the service are shown in the time zone of the reader', () => {
    const shown = new Date('2026-11-28T08:00:00Z').toLocaleString(undefined, {
      year: 'numeric',
      month: 'short',
      day: 'numeric',
      hour: '2-digit',
      minute: '2-digit',
      timeZoneName: 'short'
    });
    expect(format.inReadersZone('closed until 2026-11-28 08:00 UTC (disks)')).toBe(
      `closed until ${shown} (disks)`
    );
    expect(format.inReadersZone('2026-99-99 08:00 UTC')).toBe('2026-99-99 08:00 UTC');
  });

  it('on hover are the start of the duration in the row', () => {
    expect(format.timingExact(job())).toBe(format.exact(at(-20)));
    expect(format.timingExact(job({ state: 'queued' }))).toBe(format.exact(at(-30)));
    expect(format.timingExact(job({ state: 'failed', ended: at(-5) }))).toBe(format.exact(at(-5)));
  });
});

describe('the text of a notification', () => {
  it('ends at a clause or word within the limit of JupyterLab', () => {
    const short = 'x'.repeat(140);
    expect(format.forToast(short)).toBe(short);
    const clause = `train failed with ${'E'.repeat(70)}: a reason; and more ${'of it '.repeat(20)}`;
    expect(format.forToast(clause)).toBe(`train failed with ${'E'.repeat(70)}: a reason…`);
    const words = format.forToast('word '.repeat(60));
    expect(words).toMatch(/^(word )+word…$/);
    expect(words.length).toBeLessThanOrEqual(140);
    expect(format.forToast('x'.repeat(200))).toBe(`${'x'.repeat(139)}…`);
  });
});
