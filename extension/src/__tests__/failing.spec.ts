import { joinArguments, splitArguments } from '../argumentLine';
import { begin, toRequest } from '../draft';
import { chosenAgain, failedAt, memoryOf, placeOf, toCorrect } from '../failing';
import type { ISent, ISubmission } from '../tokens';
import { job } from './builders';

function failed(numbers: Record<string, number | string>) {
  return job({
    state: 'failed',
    reason: {
      code: 'exit-code',
      text: 'It failed.',
      numbers: { exit_code: 1, ...numbers },
      remedy: ''
    }
  });
}

describe('the place of a failure', () => {
  it('is a cell or a line of a file', () => {
    const cell = failedAt(failed({ cell: 3, line: 2 }))!;
    expect(cell.label).toBe('Open at the cell');
    expect(toCorrect(cell)).toBe('cell 3, line 2');
    const file = failedAt(failed({ file: 'train.py', line: 12 }))!;
    expect(file.label).toBe('Open train.py at line 12');
    expect(toCorrect(file)).toBe('train.py, line 12');
  });

  it('is null for a bare exit code and for a running job', () => {
    expect(failedAt(failed({}))).toBeNull();
    expect(failedAt(job())).toBeNull();
  });
});

describe('the place of a sent cell', () => {
  const cell = (id: string, number: number, source: string) => ({
    id,
    number,
    source,
    cell_type: 'code'
  });
  const sent = {
    cell: 'sent',
    cells: [cell('in-2', 2, 'x = 1'), cell('sent', 5, '# %%train\nfit(x)')]
  };
  const shown = [
    { id: 'a', source: 'x = 1', count: 2 },
    { id: 'b', source: '%%train --gpus 1\nfit(x)', count: null },
    { id: 'c', source: '%%train --gpus 2\nfit(x)', count: 5 }
  ];

  it('is found by its id', () => {
    expect(placeOf({ ...sent, cell: 'b' }, shown)).toBe(1);
  });

  it('is found by its text, and by its number among equal texts', () => {
    expect(placeOf({ ...sent, cell: 'in-2' }, shown)).toBe(0);
    expect(placeOf(sent, shown)).toBe(2);
    expect(placeOf(sent, shown.slice(0, 2))).toBe(1);
    const served = { id: 'd', source: '%%serve chat --min 0\nfit(x)', count: 5 };
    expect(placeOf(sent, [served])).toBe(0);
    expect(placeOf(sent, shown.slice(0, 1))).toBe(-1);
  });
});

describe('the dialog for sending again', () => {
  const submission = {
    entry: { kind: 'script', path: 'train.py', args: ['--lr', "it's 1", '', '$x'] },
    name: 'mine',
    gpus: 2,
    workers: 3,
    project: 'vision',
    time_limit_s: 5400,
    priority: 70,
    gpu_models: ['H100'],
    spread: true,
    tags: ['a', 'b'],
    env: { SEED: '1', NOTE: "it's two words" },
    memory_gib: 16
  } as unknown as ISubmission;

  it('restores the former request', () => {
    const draft = begin('script', memoryOf(submission));
    expect(
      toRequest({ path: 'train.py', kernelName: null, kernelId: null, cells: null }, draft)
    ).toEqual({
      kind: 'script',
      path: 'train.py',
      cells: null,
      kernel_name: null,
      kernel_id: null,
      deleted_runs: [],
      args: ['--lr', "it's 1", '', '$x'],
      gpus: 2,
      workers: 3,
      project: 'vision',
      name: 'mine',
      time_limit_s: 5400,
      priority: 70,
      gpu_models: ['H100'],
      spread: true,
      tags: ['a', 'b'],
      env: { SEED: '1', NOTE: "it's two words" },
      parameters: {},
      cpus: 0,
      memory_gib: 16
    });
  });

  it('quotes arguments so that they parse to the same values', () => {
    for (const args of [[], ['a b', '"', "'", '\\', '--x=1'], ['']]) {
      expect(splitArguments(joinArguments(args))).toEqual(args);
    }
  });

  it('selects the formerly selected cells with their current text', () => {
    const cell = (id: string) => ({
      id,
      cell_type: 'code',
      source: id,
      execution_count: null,
      selected: id === 'a'
    });
    const subject = {
      path: 'x.ipynb',
      kernelName: null,
      kernelId: null,
      cells: [cell('a'), cell('b')]
    };
    const again = chosenAgain(subject, { selected: ['b', 'gone'] } as unknown as ISent);
    expect(again.cells!.map(each => each.selected)).toEqual([false, true]);
  });
});
