import { codeOf } from '../loadedCode';

const LINE = 'net = benchpool.job("3fk2")["net"]';
const WITH_IMPORT = `import benchpool\n\n${LINE}`;

describe('code that loads a value', () => {
  it.each([
    'import benchpool',
    'import random\nimport benchpool\n\nrandom.seed(0)',
    'import numpy as np, benchpool  # the pool',
    'import benchpool; import os',
    'import benchpool.checkpoint'
  ])('is one line below a cell with %j', source => {
    expect(codeOf(LINE, [{ source, ran: true }])).toBe(LINE);
  });

  it.each([
    '',
    'import benchpool as bp',
    'import benchpool.checkpoint as checkpoint',
    'from benchpool import checkpoint',
    '# import benchpool',
    'def send():\n    import benchpool',
    'import benchpools, mybenchpool',
    'import os\nx = [os,\nbenchpool]',
    '%%train --gpus 2\nimport benchpool',
    '\n%%writefile train.py\nimport benchpool'
  ])('begins with the import below a cell with %j', source => {
    expect(codeOf(LINE, [{ source, ran: true }])).toBe(WITH_IMPORT);
  });

  it('begins with the import below a cell that has not run', () => {
    expect(codeOf(LINE, [{ source: 'import benchpool', ran: false }])).toBe(WITH_IMPORT);
  });
});
