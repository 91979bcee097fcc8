import { CHANGE } from '../changing';
import { asked, optionsOf } from '../filling';
import { FILLED_ACTIONS } from '../generated/actions';
import { jobCommand } from '../twins';

const ID = '7k2mqqqqqqqqqqqqqqqqqqqqqq';

describe('the equivalent terminal command', () => {
  it('exists for each row button with a verb', () => {
    expect(jobCommand('pause', ID)).toBe('benchpool pause 7k2mqqqq');
    expect(jobCommand('resume', ID)).toBe('benchpool resume 7k2mqqqq');
    expect(jobCommand('cancel', ID)).toBe('benchpool cancel 7k2mqqqq');
    expect(jobCommand('again', ID)).toBe('benchpool again 7k2mqqqq');
    expect(jobCommand('look', ID)).toBe('');
  });

  it('contains the options of the filled-in fields', () => {
    const filled = { gpus: 2, time_limit_s: '90 min', gpu_models: 'H100, A100', project: 'a b' };
    expect(jobCommand('change', ID, optionsOf(CHANGE, asked(CHANGE, filled)))).toBe(
      "benchpool change 7k2mqqqq --gpus 2 --time-limit 1h30m --project 'a b' --gpu-model " +
        "'H100, A100'"
    );
    expect(optionsOf(CHANGE, asked(CHANGE, { time_limit_s: 'soon' }))).toEqual({});
    const rename = FILLED_ACTIONS.find(one => one.name === 'rename')!;
    expect(jobCommand('rename', ID, optionsOf(rename, asked(rename, { name: "it's" })))).toBe(
      "benchpool rename 7k2mqqqq 'it'\\''s'"
    );
  });
});
