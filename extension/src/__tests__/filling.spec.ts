import { asked, differing, doneText, former, optionsOf, present } from '../filling';
import { FILLED_ACTIONS, IFilledAction } from '../generated/actions';
import { jobCommand } from '../twins';
import { job } from './builders';

const action: IFilledAction = {
  name: 'label',
  label: 'Label',
  summary: 'Give a job another label',
  done: '{name} of {project} is labelled.',
  ended: true,
  fields: [
    {
      name: 'name',
      title: 'Name',
      help: '',
      kind: 'text',
      least: null,
      most: null,
      longest: 100,
      empty: '',
      erasable: false
    },
    {
      name: 'priority',
      title: 'Turn',
      help: '',
      kind: 'whole',
      least: 0,
      most: 9,
      longest: null,
      empty: '',
      erasable: false
    }
  ]
};

describe('an action with fields', () => {
  const before = job({ name: 'old', priority: 3, project: 'vision' });
  const had = present(action, before);

  it('starts with the current values of the job', () => {
    expect(had).toEqual({ name: 'old', priority: 3 });
  });

  it('sends only the changed fields', () => {
    expect(differing(had, { name: 'new', priority: 3 })).toEqual({ name: 'new' });
    expect(differing(had, { name: 'old', priority: 3 })).toBeNull();
  });

  it('is undone with the former values', () => {
    expect(former(had, { name: 'new' })).toEqual({ name: 'old' });
  });

  it('is confirmed with the text of the action table', () => {
    expect(doneText(action, before)).toBe('old of vision is labelled.');
  });
});

describe('the note of a job', () => {
  const note = FILLED_ACTIONS.find(one => one.name === 'note')!;

  it('is removed by an empty text', () => {
    const had = present(note, job({ note: 'warm-up helps' }));
    const changed = differing(had, { note: '' })!;
    expect(note.fields[0]!.erasable).toBe(true);
    expect(asked(note, changed)).toEqual({ note: '' });
    expect(jobCommand('note', '3fk2hq7a', optionsOf(note, { note: '' }))).toBe(
      "benchpool note 3fk2hq7a ''"
    );
  });

  it('is not sent if an empty text is not allowed', () => {
    expect(asked(action, { name: '' })).toEqual({});
  });
});

describe('the name of a job', () => {
  const rename = FILLED_ACTIONS.find(one => one.name === 'rename')!;

  it('has the bounds of the service and can change after the job has ended', () => {
    expect(rename.ended).toBe(true);
    expect(rename.fields).toEqual([
      expect.objectContaining({ kind: 'text', longest: 100, empty: '' })
    ]);
    const ended = job({ name: 'old', state: 'succeeded' });
    expect(differing(present(rename, ended), { name: 'new' })).toEqual({ name: 'new' });
    expect(doneText(rename, { ...ended, name: 'new' })).toBe('The new name is new.');
  });
});
