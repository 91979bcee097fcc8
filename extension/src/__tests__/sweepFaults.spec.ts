import { begin, type IDraft } from '../draft';
import {
  faultOfAnswer,
  faultOfNames,
  faultOfParameter,
  faultOfTimes,
  isShownAtField
} from '../sweepFaults';
import { preparation } from './builders';

const LR = { name: 'lr', type: 'float', default: '0.1', help: '', cell: 'a', tagged: true };

/** Return a dialog with a refusal of this field and these swept names. */
function refused(
  field: string | null,
  swept: Record<string, string> = {},
  change: Partial<IDraft> = {}
): Parameters<typeof isShownAtField>[0] {
  const refusal = { code: 'invalid', message: 'No.', field, numbers: {} };
  return {
    draft: { ...begin('cells', null), ...change },
    error: null,
    preparation: preparation({ parameters: [LR], swept, refusal })
  };
}

function listed(name: string): Partial<IDraft> {
  const draft = begin('cells', null);
  return { sweep: { ...draft.sweep, names: [{ name, values: '1' }] } };
}

describe('a refusal of a sweep', () => {
  it.each(['parameters.lr', 'sweep.lr'])('is at the field of its parameter: %s', field => {
    const dialog = refused(field);
    expect(faultOfParameter(dialog, 'lr')).toBe('No.');
    expect(faultOfParameter(dialog, 'seed')).toBeNull();
    expect([faultOfNames(dialog), isShownAtField(dialog)]).toEqual([undefined, true]);
  });

  it('of the service names a swept parameter without a prefix', () => {
    expect(faultOfParameter(refused('lr', { lr: '2 values' }), 'lr')).toBe('No.');
    expect([faultOfParameter(refused('lr'), 'lr'), isShownAtField(refused('lr'))]).toEqual([
      null,
      false
    ]);
  });

  it('is below the list if the name is listed there', () => {
    const dialog = refused('sweep.lr', {}, listed('lr'));
    expect([faultOfNames(dialog), faultOfParameter(dialog, 'lr')]).toEqual(['No.', null]);
    expect(faultOfNames(refused('sweep.unknown', {}, listed('unknown')))).toBe('No.');
  });

  it.each([
    ['trials', 'trials'],
    ['sweep.goal', 'goal'],
    ['metric', 'metric'],
    ['sweep.method', 'method']
  ] as const)('is at the field of its answer: %s', (field, answer) => {
    const dialog = refused(field);
    expect([faultOfAnswer(dialog, answer), faultOfNames(dialog)]).toEqual(['No.', undefined]);
    expect([faultOfAnswer(dialog, 'patience'), isShownAtField(dialog)]).toEqual([undefined, true]);
  });

  it('of the times of a schedule is at their field', () => {
    expect([faultOfTimes(refused('when')), isShownAtField(refused('zone'))]).toEqual(['No.', true]);
  });

  it('of another field is at the end of the dialog', () => {
    expect([isShownAtField(refused('after')), isShownAtField(refused(null))]).toEqual([
      false,
      false
    ]);
  });
});
