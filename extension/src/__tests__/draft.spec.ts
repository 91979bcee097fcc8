import { splitArguments } from '../argumentLine';
import * as draft from '../draft';
import type { ISubject } from '../draft';
import { isTicked, sentAsShown, ticked } from '../offeredValues';
import { gpu, preparation, status } from './builders';

const CELLS = ['# title', 'import numpy', 'x = 1', 'train(x)', 'plot(x)'].map((source, i) => ({
  id: `c${i}`,
  cell_type: i === 0 ? 'markdown' : 'code',
  source,
  execution_count: null,
  selected: i === 3
}));

const SUBJECT = { path: 'train.ipynb', kernelName: 'python3', kernelId: 'k1', cells: CELLS };

const PREPARED = preparation({
  cells: CELLS.map((cell, index) => ({
    id: cell.id,
    index,
    included: index > 0 && index < 4,
    selected: cell.selected,
    why: index < 3 ? 'comes before' : null
  }))
});

describe('the remembered answers', () => {
  it('are restored unchanged', () => {
    const sent = { ...draft.begin('cells', null), gpus: 4, timeLimit: '2 h', project: 'susan' };
    expect(draft.begin('cells', draft.remember(sent))).toEqual(sent);
  });

  it.each([
    null,
    'text',
    [],
    { gpus: -1, workers: 'x', project: 7, args: {} },
    { gpus: 1e9, workers: 1.5 }
  ])('are ignored if they are invalid: %j', memory => {
    expect(draft.begin('cells', memory)).toEqual(draft.begin('cells', {}));
  });
});

describe('a request', () => {
  it('contains the current cells and marks the selected cells', () => {
    const request = draft.toRequest(SUBJECT, draft.begin('cells', { gpus: 2 }));
    expect(request).toMatchObject({ kind: 'cells', path: 'train.ipynb', gpus: 2, name: null });
    expect(request.cells!.filter(cell => cell.selected).map(cell => cell.id)).toEqual(['c3']);
  });

  it('skips an unticked cell and marks a ticked cell', () => {
    const mine = { ...draft.begin('cells', null), toggles: { c2: false, c4: true } };
    const request = draft.toRequest(SUBJECT, mine);
    expect(request.cells!.map(cell => cell.cell_type)).toEqual([
      'markdown',
      'code',
      'code',
      'code',
      'code'
    ]);
    expect(request.cells!.map(cell => cell.left_out ?? false)).toEqual([
      false,
      false,
      true,
      false,
      false
    ]);
    expect(request.cells!.filter(cell => cell.selected).map(cell => cell.id)).toEqual(['c3']);
    expect(request.cells!.filter(cell => cell.ticked).map(cell => cell.id)).toEqual(['c4']);
  });

  it('contains the metadata of an open notebook but not of a file', () => {
    const metadata = { title: 'Diffusion' } as unknown as ISubject['metadata'];
    const mine = draft.begin('notebook', null);
    expect(draft.toRequest({ ...SUBJECT, metadata }, mine).metadata).toEqual(metadata);
    expect(draft.toRequest({ ...SUBJECT, cells: null }, mine)).not.toHaveProperty('metadata');
  });

  it('for a script contains arguments and no cells', () => {
    const mine = { ...draft.begin('script', null), args: '--lr 1e-3 "two words"', priority: '70' };
    const request = draft.toRequest(
      { path: 'train.py', kernelName: null, kernelId: null, cells: null },
      mine
    );
    expect(request).toMatchObject({
      args: ['--lr', '1e-3', 'two words'],
      cells: null,
      priority: 70,
      gpu_models: [],
      spread: false
    });
  });

  it('contains the GPU model, and spread only for several workers', () => {
    const mine = { ...draft.begin('script', null), gpuModel: 'H100', spread: true };
    expect(draft.toRequest(SUBJECT, mine)).toMatchObject({ gpu_models: ['H100'], spread: false });
    expect(draft.toRequest(SUBJECT, { ...mine, workers: 2 }).spread).toBe(true);
  });
});

describe('values, retries and tags', () => {
  const retried = (retries: string, retryOn: string) =>
    draft.toRequest(
      { path: 'a.py', kernelName: null, cells: null },
      { ...draft.begin('script', null), retries, retryOn }
    );

  it('send the ticked values, and no list while nothing was ticked', () => {
    const subject = { path: 'a', kernelName: null, kernelId: null, cells: null };
    const fresh = draft.begin('cells', null);
    expect(draft.toRequest(subject, fresh)).not.toHaveProperty('send');
    const offers = [
      { names: ['x', 'y'], text: '', chosen: true },
      { names: ['z'], text: '', chosen: false }
    ];
    expect(offers.map(offer => isTicked(fresh, offer))).toEqual([true, false]);
    expect(sentAsShown(fresh, { offers })).toEqual({ send: ['x', 'y'] });
    expect(sentAsShown(fresh, null)).toEqual({});
    expect(sentAsShown({ ...fresh, send: [] }, { offers })).toEqual({ send: [] });
    const send = ticked(fresh, offers, offers[1]!, true);
    expect(send).toEqual(['x', 'y', 'z']);
    expect(ticked({ send }, offers, offers[0]!, false)).toEqual(['z']);
    expect(draft.toRequest(subject, { ...fresh, send: ['z'] })).toMatchObject({ send: ['z'] });
  });

  it('send each typed name once and report invalid names', () => {
    const kept = (kind: 'cells' | 'notebook' | 'script', keep: string, pickle = false) =>
      draft.toRequest(
        { path: 'a', kernelName: null, kernelId: null, cells: null },
        { ...draft.begin(kind, null), keep, pickle }
      );
    expect(kept('cells', 'model, losses model')).toMatchObject({ keep: ['model', 'losses'] });
    expect(kept('notebook', '', true)).toMatchObject({ keep: null, pickle: true });
    expect(kept('script', 'model', true)).not.toHaveProperty('keep');
    expect(draft.faults({ ...draft.begin('cells', null), keep: 'a b.c' }).keep).toBe(
      'Return values: “b.c” is not a valid name.'
    );
    const memory = draft.remember({ ...draft.begin('cells', null), keep: 'a', pickle: true });
    expect(draft.begin('cells', memory)).toMatchObject({ keep: 'a', pickle: true });
  });

  it('send retries only if they were typed', () => {
    expect(retried('2', 'gpu-error, exit-code')).toMatchObject({
      retries: 2,
      retry_on: ['gpu-error', 'exit-code']
    });
    expect(retried('', '')).not.toHaveProperty('retries');
    expect(draft.faults({ ...draft.begin('script', null), retries: '11' }).retries).toBe(
      'Retries: a whole number from 0 to 10, or empty for the site default.'
    );
  });

  const tagged = (tags: string) => ({ ...draft.begin('script', null), tags });

  it('split tags at blanks and commas and remove duplicates', () => {
    expect(draft.toRequest(SUBJECT, tagged(' baseline, sweep-3  baseline')).tags).toEqual([
      'baseline',
      'sweep-3'
    ]);
    expect(draft.toRequest(SUBJECT, tagged('')).tags).toEqual([]);
  });

  it('remember the tags', () => {
    expect(draft.begin('script', draft.remember(tagged('a b'))).tags).toBe('a b');
  });

  it('report too many or too long tags with number and limit', () => {
    const many = Array.from({ length: 17 }, (_, i) => `t${i}`).join(' ');
    expect(draft.faults(tagged(many)).tags).toBe('Tags: 17 given, at most 16.');
    expect(draft.faults(tagged('x'.repeat(64))).tags).toMatch(/has 64 characters, at most 63/);
    expect(draft.faults(tagged('x'.repeat(63))).tags).toBeUndefined();
  });
});

describe('the choices of the pool', () => {
  const pool = { ...status(), gpus: [gpu('H100', 'n1'), gpu('A100', 'n1'), gpu('H100', 'n1')] };

  it('list each GPU model once, including a former choice', () => {
    expect(draft.modelChoices(pool, '')).toEqual(['A100', 'H100']);
    expect(draft.modelChoices(pool, 'V100')).toEqual(['A100', 'H100', 'V100']);
    expect(draft.modelChoices(null, '')).toEqual([]);
  });

  it('offer to spread workers over several nodes only', () => {
    expect(draft.hasNodes(pool)).toBe(false);
    expect(draft.hasNodes({ ...pool, gpus: [...pool.gpus, gpu('H100', 'n2')] })).toBe(true);
    expect(draft.hasNodes(null)).toBe(false);
  });

  it('are remembered', () => {
    const mine = { ...draft.begin('cells', null), gpuModel: 'H100', spread: true };
    expect(draft.begin('cells', draft.remember(mine))).toMatchObject({
      gpuModel: 'H100',
      spread: true
    });
    expect(draft.remember(draft.begin('cells', null))).toEqual({ gpus: 1 });
  });
});

describe('arguments', () => {
  it.each([
    ['', []],
    ['  a   b ', ['a', 'b']],
    [`'a b' "c 'd'" e\\ f`, ['a b', "c 'd'", 'e f']],
    [`--x="1 2" ''`, ['--x=1 2', '']],
    [`'$HOME' "a\\"b" "a\\b"`, ['$HOME', 'a"b', 'a\\b']]
  ])('%s is split like in a shell', (line, args) => {
    expect(splitArguments(line)).toEqual(args);
  });

  it('with an open quote are rejected', () => {
    expect(splitArguments('"a')).toBeNull();
    expect(draft.faults({ ...draft.begin('script', null), args: '"a' }).args).toMatch(/quote/);
  });
});

describe('a time limit', () => {
  it.each([
    ['', null],
    ['90', 90],
    ['90 min', 5400],
    ['1.5h', 5400],
    ['1 d 12 h', 129_600],
    ['30s', 30],
    ['0 s', undefined],
    ['400 d', undefined],
    ['soon', undefined]
  ])('of “%s” is parsed as %p', (text, seconds) => {
    expect(draft.parseDuration(text)).toBe(seconds);
  });
});

describe('faults', () => {
  it('name the field and its bounds', () => {
    const bad = { ...draft.begin('cells', null), gpus: NaN, workers: 0, priority: '2000' };
    const found = draft.faults(bad);
    expect(Object.keys(found).sort()).toEqual(['gpus', 'priority', 'workers']);
    expect(found.gpus).toContain('1 to 1024');
  });

  it('are absent from a new draft', () => {
    expect(draft.faults(draft.begin('cells', null))).toEqual({});
  });
});

describe('the list of cells', () => {
  const mine = draft.begin('cells', null);

  it('numbers code cells like the screen and marks the cells that run', () => {
    const cells = draft.listCells(SUBJECT, mine, PREPARED);
    expect(cells.map(cell => [cell.number, cell.included])).toEqual([
      [2, true],
      [3, true],
      [4, true],
      [5, false]
    ]);
    expect(draft.cellsLine(cells)).toBe('cells 2-3 (needed before), then cell 4');
  });

  it('shows the selection before the server has answered', () => {
    expect(draft.cellsLine(draft.listCells(SUBJECT, mine, null))).toBe('cell 4');
  });

  it('marks a cell that the user left out', () => {
    const cells = draft.listCells(SUBJECT, { ...mine, toggles: { c2: false } }, PREPARED);
    expect(cells[1]).toMatchObject({ included: false, why: 'left out by you' });
  });

  it('shows a tick before the server has answered', () => {
    const prepared = preparation({
      cells: PREPARED.cells.map(cell => ({
        ...cell,
        included: cell.index === 3,
        why: 'left out by you'
      }))
    });
    const again = { ...mine, toggles: { c2: true } };
    const cells = draft.listCells(SUBJECT, again, prepared);
    expect(cells.map(cell => cell.included)).toEqual([false, true, true, false]);
    expect(draft.cellsLine(cells)).toBe('cell 3 (needed before), then cell 4');
    const byHand = prepared.cells.map(cell => ({ ...cell, selected: true }));
    const chosen = draft.listCells(SUBJECT, again, { ...prepared, cells: byHand });
    expect(draft.cellsLine(chosen)).toBe('cells 3-4');
  });

  it('shows the cell and line of a problem', () => {
    const cells = draft.listCells(SUBJECT, mine, PREPARED);
    const problem = { level: 'error' as const, text: 'no name “y”', cell: 'c3', line: 1 };
    expect(draft.problemLine(problem, cells)).toBe('cell 4, line 1: no name “y”');
    expect(draft.problemLine({ ...problem, cell: null, line: null }, cells)).toBe('no name “y”');
  });

  it('sorts errors first and infos last', () => {
    const problem = { text: 'a', cell: null };
    const prepared = (['info', 'warning', 'error', 'warning'] as const).map((level, line) => ({
      ...problem,
      level,
      line
    }));
    expect(draft.worstFirst(prepared).map(({ line }) => line)).toEqual([2, 1, 3, 0]);
  });
});
