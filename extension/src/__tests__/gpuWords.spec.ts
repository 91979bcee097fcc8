import { chipText, chipTitle, ofServer, workingOf } from '../gpuWords';
import { at, NOW } from './builders';
import type { IGpuUse } from '../tokens';

function gpu(change: Partial<IGpuUse> = {}): IGpuUse {
  return {
    uuid: 'GPU-1',
    index: 0,
    model: 'A100',
    node: 'lab1',
    simulated: false,
    mine: true,
    at: at(0),
    span_s: 10,
    activity: 0.034,
    sm_activity: null,
    memory_used_gib: 41.2,
    memory_total_gib: 80,
    power_w: 90,
    temperature_c: 40,
    throttled: [],
    xid: null,
    idle_since: null,
    user: 'susan',
    project: null,
    job: null,
    worker: null,
    server: '',
    ...change
  };
}

describe('the GPUs of a bench', () => {
  it('show use, memory and idle time', () => {
    const idle = gpu({ activity: 0.004, idle_since: at(-22) });
    expect(chipText([idle], NOW)).toBe('GPU 0: 0 % · 41/80 GB · idle 22 min');
    expect(chipText([gpu()], NOW)).toBe('GPU 0: 3 % · 41/80 GB');
  });

  it('show activity beside an idle GPU only', () => {
    const idle = gpu({ activity: 0, idle_since: at(-22) });
    const bench = { kernels: 2, busy_kernels: 1, executions: 5, terminal_programs: 3 };
    expect(chipText([idle], NOW, bench)).toBe(
      'GPU 0: 0 % · 41/80 GB · idle 22 min · a kernel computes'
    );
    expect(chipText([gpu()], NOW, bench)).toBe('GPU 0: 3 % · 41/80 GB');
    expect(workingOf({ ...bench, busy_kernels: 2 })).toBe('2 kernels compute');
    expect(workingOf({ ...bench, busy_kernels: 0 })).toBe('3 programs run in terminals');
    expect(workingOf({ ...bench, busy_kernels: 0, terminal_programs: null })).toBeNull();
  });

  it('are marked as simulated', () => {
    const one = gpu({ simulated: true, memory_used_gib: null });
    expect(chipText([one], NOW)).toBe('GPU 0: 3 % · simulated');
    expect(chipTitle([one])).toContain('are simulated');
    expect(chipTitle([gpu()])).not.toContain('simulated');
  });

  it('omit values that were not measured', () => {
    expect(chipText([gpu({ at: null, activity: null })], NOW)).toBe('GPU 0: not measured now');
    expect(chipText([gpu({ activity: null })], NOW)).toBe('GPU 0: 41/80 GB');
  });

  it('are listed singly up to two and summed beyond', () => {
    const two = [gpu(), gpu({ activity: 1 })];
    expect(chipText(two, NOW)).toBe('GPU 0: 3 % · 41/80 GB | GPU 1: 100 % · 41/80 GB');
    const four = [1, 0, 0, 0].map(activity => gpu({ activity }));
    expect(chipText(four, NOW)).toBe('4 GPUs: 25 % · 165/320 GB');
  });

  it('are idle together if each GPU is idle', () => {
    const three = [at(-60), at(-5), at(-30)].map(idle_since => gpu({ activity: 0, idle_since }));
    expect(chipText(three, NOW)).toBe('3 GPUs: 0 % · 124/240 GB · idle 5 min');
    expect(chipText([...three, gpu({ activity: 1 })], NOW)).not.toContain('idle');
    expect(chipText([gpu({ idle_since: at(-0.5) })], NOW)).not.toContain('idle');
  });

  it('include only GPUs of this server', () => {
    const others = [gpu({ server: 'big' }), gpu({ server: null, job: 'a' }), gpu({ mine: false })];
    expect(ofServer([gpu(), ...others], '')).toHaveLength(1);
    expect(ofServer(others, 'big')).toHaveLength(1);
  });

  it('show the cause of throttling', () => {
    expect(chipTitle([gpu({ throttled: ['thermal'] })])).toContain('throttled: thermal');
  });
});
