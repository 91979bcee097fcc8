import {
  benchLine,
  dialogTitle,
  inShort,
  isGoing,
  needsAnswer,
  whatComes,
  whatGivingDoes,
  whatHappened,
  whatKeepingDoes,
  whatSendingDoes
} from '../benchWords';
import type { IBenchIdleness, IBenchNow, IGivenBack } from '../tokens';
import { at, NOW } from './builders';

function idle(change: Partial<IBenchIdleness> = {}): IBenchIdleness {
  return {
    lease: 'b'.repeat(26),
    user: 'susan',
    server: '',
    gpus: ['GPU-1'],
    step: 'asked',
    idle_s: 2700,
    coverage: 1,
    kept_until: null,
    keeps_left: 2,
    keep_s: 3600,
    exempt_until: null,
    tell_s: 900,
    ask_s: 2700,
    act_s: 3600,
    act: 'release',
    acts_at: at(15),
    next: 'due',
    next_at: at(15),
    command: 'none',
    parks: false,
    asked: false,
    stopping: false,
    ...change
  };
}

function bench(change: Partial<IBenchNow> = {}): IBenchNow {
  return {
    kernels: 2,
    busy_kernels: 0,
    executions: 7,
    terminal_programs: 0,
    gives_up: true,
    idleness: idle(),
    given_back: null,
    ...change
  };
}

const GONE: IGivenBack = {
  at: at(-1),
  gpus: 1,
  asked: false,
  idle_s: 3600,
  kernels: 2,
  note: 'benchpool-idle-bench.md',
  done: true
};

describe('an idle bench', () => {
  it('needs an answer only when an action is due', () => {
    expect(needsAnswer(bench())).toBe(true);
    expect(needsAnswer(bench({ idleness: idle({ step: 'due' }) }))).toBe(true);
    for (const step of ['used', 'cpu-phase', 'doubt', 'idle', 'told'] as const) {
      expect(needsAnswer(bench({ idleness: idle({ step }) }))).toBe(false);
    }
    expect(needsAnswer(bench({ idleness: idle({ act: 'none' }) }))).toBe(false);
    expect(needsAnswer(bench({ given_back: GONE }))).toBe(false);
    expect(needsAnswer(null)).toBe(false);
  });

  it('shows its next action and the time in the status bar', () => {
    expect(benchLine(bench(), NOW)).toBe('reclaimed in 15 min');
    expect(benchLine(bench({ idleness: idle({ act: 'stop' }) }), NOW)).toBe(
      'server stops in 15 min'
    );
    expect(benchLine(bench({ idleness: idle({ step: 'told' }) }), NOW)).toBeNull();
    const kept = idle({ step: 'used', kept_until: at(60) });
    expect(benchLine(bench({ idleness: kept }), NOW)).toMatch(/^kept until \d\d:\d\d$/);
    const over = idle({ step: 'used', kept_until: at(-1) });
    expect(benchLine(bench({ idleness: over }), NOW)).toBeNull();
    expect(benchLine(bench({ idleness: idle({ command: 'release' }) }), NOW)).toBe(
      'releasing the GPU…'
    );
    expect(benchLine(null, NOW)).toBeNull();
  });

  it('shows the action that follows without an answer', () => {
    expect(dialogTitle(bench())).toBe('Your GPU has been idle for 45 min');
    expect(dialogTitle(bench({ idleness: idle({ gpus: ['a', 'b'] }) }))).toBe(
      'Your 2 GPUs have been idle for 45 min'
    );
    expect(whatComes(idle(), NOW)).toMatch(
      /In 15 min \(\d\d:\d\d\) the GPU is reclaimed and this server continues without it\./
    );
    expect(whatComes(idle({ parks: true }), NOW)).toMatch(
      /the GPU is lent until you run a cell, and the kernel keeps its variables\. If the kernel cannot be parked, the GPU is reclaimed/
    );
    expect(whatComes(idle({ act: 'stop', gpus: ['a', 'b'] }), NOW)).toMatch(
      /In 15 min \(\d\d:\d\d\) this server is stopped and its 2 GPUs are reclaimed\./
    );
  });

  it('shows its state while no action is due', () => {
    const used = { step: 'used', acts_at: null } as const;
    expect(whatComes(idle(used), NOW)).toBe(
      'After 1 h without use the GPU is reclaimed and this server continues without it.'
    );
    expect(whatComes(idle({ ...used, act: 'none' }), NOW)).toContain('not reclaimed here');
    expect(whatComes(idle({ ...used, kept_until: at(5) }), NOW)).toMatch(/^You keep it until/);
    expect(whatComes(idle({ ...used, exempt_until: at(1440) }), NOW)).toContain('exempt');
  });

  it('describes each answer and its losses', () => {
    expect(whatKeepingDoes(idle())).toBe(
      'The bench is kept for 1 h. You can do this 2 more times in 24 hours.'
    );
    expect(whatKeepingDoes(idle({ keeps_left: 0 }))).toContain('the maximum number of times');
    expect(whatGivingDoes(bench({ busy_kernels: 1 }))).toBe(
      '2 kernels are restarted without GPU, and their variables are lost. Idle terminals are ' +
        'closed. Files and open notebooks stay. To get a GPU again, stop this server on the Hub’s ' +
        'page and start it with a GPU. 1 kernel is computing now: the result is lost.'
    );
    expect(whatGivingDoes(bench({ kernels: 0 }))).toContain('No kernel runs.');
    expect(whatGivingDoes(bench({ gives_up: false }))).toContain('This server is stopped');
    expect(whatSendingDoes('train.ipynb')).toContain('cells of train.ipynb');
    expect(whatSendingDoes(null)).toContain('Open a notebook first');
  });
});

describe('reclaimed GPUs', () => {
  it('are reported with the reason for the kernel restarts', () => {
    expect(benchLine(bench({ given_back: GONE }), NOW)).toMatch(/^no GPU: released at \d\d:\d\d$/);
    expect(inShort(GONE)).toContain('Kernels were restarted without it');
    const text = whatHappened(GONE);
    expect(text).toContain('after 1 h without use');
    expect(text).toContain('2 kernels were restarted without GPU, not by an error');
    expect(text).toContain('benchpool-idle-bench.md');
    expect(text).not.toContain('memory');
    expect(whatHappened({ ...GONE, asked: true, kernels: 0, note: null })).toMatch(
      /^The GPU of this server was released at \d\d:\d\d, at your request\. Files stay\. To get/
    );
  });

  it('are being returned until the scheduler has them', () => {
    expect(isGoing(bench({ given_back: { ...GONE, done: false } }))).toBe(true);
    expect(isGoing(bench({ given_back: GONE, idleness: null }))).toBe(false);
  });
});
