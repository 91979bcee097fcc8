import { begin, remember, toRequest } from '../draft';
import { memoryOf } from '../failing';
import { constantFields, given, mainFields, typedAgain, typedOf } from '../parameters';
import type { IOfferedParameter, ISubmission } from '../tokens';

function offered(name: string, tagged: boolean): IOfferedParameter {
  return { name, type: 'float', default: '0.1', help: '', cell: 'a', tagged };
}

const OFFERED = [offered('lr', true), offered('seed', false), offered('steps', false)];

describe('parameters in the dialog', () => {
  it('are those of the tagged cell and former ones with a value', () => {
    const fields = mainFields(OFFERED, { lr: '2', old: '3', gone: '' });
    expect(fields.map(({ name, offered: there }) => [name, there])).toEqual([
      ['lr', true],
      ['old', false]
    ]);
  });

  it('include constants in their order', () => {
    expect(constantFields(OFFERED).map(({ name }) => name)).toEqual(['seed', 'steps']);
  });

  it('keep their default if the field is empty', () => {
    expect(given({ lr: '', steps: '3' })).toEqual({ steps: '3' });
  });

  it('are sent with cells and notebooks only and are not remembered', () => {
    const draft = { ...begin('cells', null), parameters: { lr: '2' } };
    const subject = { path: 'a.ipynb', kernelName: null, kernelId: null, cells: [] };
    expect(toRequest(subject, draft).parameters).toEqual({ lr: '2' });
    expect(toRequest(subject, { ...draft, kind: 'script' }).parameters).toEqual({});
    expect(remember(draft)).not.toHaveProperty('parameters');
  });

  it('are restored when a job is sent again', () => {
    const submission = {
      entry: { kind: 'notebook' },
      parameters: { lr: 0.5, name: 'a', deep: true, limit: null, sizes: [1, 2] }
    } as unknown as ISubmission;
    const typed = { lr: '0.5', name: 'a', deep: 'True', limit: 'None', sizes: '[1,2]' };
    expect(begin('notebook', memoryOf(submission)).parameters).toEqual(typed);
    expect(typedAgain({})).toEqual({});
    expect(typedOf({ lr: 3, name: 'a' })).toEqual({ name: 'a' });
  });
});
