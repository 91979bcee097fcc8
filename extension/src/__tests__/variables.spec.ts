import { begin, faults, remember, toRequest } from '../draft';
import { keptVariables, variablesLine, variablesOf } from '../variables';

describe('variables of a job', () => {
  it('are parsed like in a shell and written in the same format', () => {
    const read = { A: '1', B: 'two words', EMPTY: '', Q: "it's" };
    expect(variablesOf(`A=1 B="two words" EMPTY= Q='it'"'"'s'`)).toEqual(read);
    expect(variablesOf(variablesLine(read))).toEqual(read);
    expect(variablesOf('  ')).toEqual({});
  });

  it('are rejected if invalid, like amounts that are not numbers', () => {
    for (const env of ['A', '1A=2', 'A="open', '=x']) {
      expect(faults({ ...begin('cells', null), env }).env).toMatch(/NAME=VALUE/);
    }
    const amounts = faults({ ...begin('cells', null), cpus: 'many', memory: '-1' });
    expect(amounts.cpus).toMatch(/from 0 to 10000,/);
    expect(amounts.memory).toMatch(/from 0 to 1000000,/);
  });

  it('are remembered in the notebook, except for secrets', () => {
    const line = 'SEED=1 WANDB_API_KEY=abc HF_TOKEN=def my_password=x';
    expect(keptVariables(line)).toBe('SEED=1');
    const draft = { ...begin('cells', null), env: line, cpus: '2', memory: '1.5' };
    expect(remember(draft)).toEqual({ gpus: 1, env: 'SEED=1', cpus: '2', memory: '1.5' });
    expect(JSON.stringify(remember({ ...draft, env: 'HF_TOKEN=def' }))).not.toContain('def');
    const subject = { path: 'a.py', kernelName: null, kernelId: null, cells: null };
    expect(toRequest(subject, draft)).toMatchObject({
      env: { SEED: '1', WANDB_API_KEY: 'abc' },
      cpus: 2,
      memory_gib: 1.5
    });
  });
});
