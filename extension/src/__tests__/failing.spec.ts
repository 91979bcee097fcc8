import { begin, joinArguments, splitArguments, toRequest } from '../draft';
import { chosenAgain, failedAt, memoryOf, toCorrect } from '../failing';
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

describe('where a job failed', () => {
  it('is a cell, or a line of a file', () => {
    const cell = failedAt(failed({ cell: 3, line: 2 }))!;
    expect(cell.label).toBe('Open at the cell');
    expect(toCorrect(cell)).toBe('cell 3, line 2');
    const file = failedAt(failed({ file: 'train.py', line: 12 }))!;
    expect(file.label).toBe('Open train.py at line 12');
    expect(toCorrect(file)).toBe('train.py, line 12');
  });

  it('is not known of an exit code alone, nor of a job that goes on', () => {
    expect(failedAt(failed({}))).toBeNull();
    expect(failedAt(job())).toBeNull();
  });
});

describe('sending again', () => {
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
    tags: ['a', 'b']
  } as unknown as ISubmission;

  it('asks for what was asked for', () => {
    const draft = begin('script', memoryOf(submission));
    expect(toRequest({ path: 'train.py', kernelName: null, cells: null }, draft)).toEqual({
      kind: 'script',
      path: 'train.py',
      cells: null,
      kernel_name: null,
      args: ['--lr', "it's 1", '', '$x'],
      gpus: 2,
      workers: 3,
      project: 'vision',
      name: 'mine',
      time_limit_s: 5400,
      priority: 70,
      gpu_models: ['H100'],
      spread: true,
      tags: ['a', 'b']
    });
  });

  it('writes arguments so that they are read as the same', () => {
    for (const args of [[], ['a b', '"', "'", '\\', '--x=1'], ['']]) {
      expect(splitArguments(joinArguments(args))).toEqual(args);
    }
  });

  it('chooses the cells that were chosen, as they stand now', () => {
    const cell = (id: string) => ({
      id,
      cell_type: 'code',
      source: id,
      execution_count: null,
      selected: id === 'a'
    });
    const subject = { path: 'x.ipynb', kernelName: null, cells: [cell('a'), cell('b')] };
    const again = chosenAgain(subject, { selected: ['b', 'gone'] } as unknown as ISent);
    expect(again.cells!.map(each => each.selected)).toEqual([false, true]);
  });
});
