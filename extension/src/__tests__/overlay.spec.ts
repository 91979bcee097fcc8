import { overlays, sendsOf } from '../overlayModel';
import { runsOf } from '../sweepModel';
import type { ICurve, ISweep } from '../tokens';
import { job } from './builders';

function curve(name: string, steps: number[], values: (number | null)[]): ICurve {
  const runs = steps.flatMap((step, i) => {
    const value = values[i] ?? null;
    return value === null ? [] : [{ step, value }];
  });
  const by = (sign: number) => [...runs].sort((a, b) => sign * (a.value - b.value))[0] ?? null;
  return {
    name,
    steps,
    values,
    after_s: steps,
    attempts: steps.map(() => 1),
    last: runs[runs.length - 1] ?? null,
    min: by(1),
    max: by(-1),
    goal: 'min'
  };
}
const run = (id: string, ...curves: ICurve[]) => ({ id, label: `lr ${id}`, curves });

describe('overlaid curves', () => {
  it('share one scale', () => {
    const [loss, ...others] = overlays([
      run('a', curve('loss', [0, 10], [4, 2])),
      run('b', curve('loss', [0, 20], [4, 0]), curve('only', [0], [1]))
    ]);
    expect(others).toEqual([]);
    expect([loss!.begin, loss!.end]).toEqual(['0', '20']);
    const ends = loss!.lines.map(line => line.stretches[0]!.split(' ').map(at => at.split(',')));
    // Both start at the same point. At half of its steps, the second run is where the first run
    // ends.
    expect(ends[0]![0]).toEqual(ends[1]![0]);
    const [first, second] = ends.map(points => points[1]!.map(Number));
    expect(first![0]! - 40).toBeCloseTo((second![0]! - 40) / 2, 0);
    expect(first![1]!).toBeLessThan(second![1]!);
    expect(loss!.words).toBe('2 runs: lr a 2 at step 10; lr b 0 at step 20.');
  });

  it('keep their line style in each chart and have gaps', () => {
    const found = overlays([
      run('a', curve('loss', [0], [1])),
      run('b', curve('loss', [0, 1, 2, 3], [1, null, 1, 2]), curve('acc', [0], [1])),
      run('c', curve('acc', [0], [2]), curve('loss', [0], [null]))
    ]);
    expect(found.map(one => [one.name, one.lines.map(line => line.place)])).toEqual([
      ['loss', [0, 1]],
      ['acc', [1, 2]]
    ]);
    expect(found[0]!.lines[1]).toMatchObject({ dots: [expect.anything()] });
    expect(found[0]!.lines[1]!.stretches).toHaveLength(1);
  });

  it('show trials, tasks or repeated jobs', () => {
    const row = { number: 4, job: 'j', parameters: { lr: 0.1, array_task_id: 9 } };
    const sweep = (array: boolean) =>
      ({ plan: { array }, trials: [row, { ...row, job: null }] }) as unknown as ISweep;
    expect(runsOf(sweep(false))).toEqual([{ id: 'j', label: 'lr 0.1, array_task_id 9' }]);
    expect(runsOf(sweep(true))).toEqual([{ id: 'j', label: 'task 9' }]);
    const old = job({ id: 'old', state: 'succeeded', attempt: 1 });
    const head = job({ id: 'new', state: 'queued', attempt: 0 });
    expect(sendsOf({ job: head, earlier: [old] })).toEqual([
      { id: 'old', label: 'old (succeeded)' }
    ]);
  });
});
