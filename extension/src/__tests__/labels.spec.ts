import { labelled, labelsIn, labelsOf } from '../labels';
import { job } from './builders';

describe('labels', () => {
  const plain = job({ id: 'a' });
  const over = job({ id: 'b', over_quota: true });

  it('match the labels of a row', () => {
    expect(labelsOf(plain)).toEqual([]);
    expect(labelsOf(over)).toEqual(['over quota']);
  });

  it('include the tags of a job', () => {
    const tagged = job({ id: 'c', tags: ['sweep', 'lr-3'], over_quota: true });
    expect(labelsOf(tagged)).toEqual(['over quota', 'sweep', 'lr-3']);
    expect(labelled([plain, tagged], 'sweep')).toEqual([tagged]);
    expect(labelsIn([tagged, over])).toEqual(['lr-3', 'over quota', 'sweep']);
  });

  it('are listed once', () => {
    expect(labelsIn([over, plain, over])).toEqual(['over quota']);
  });

  it('filter a list, which stays complete without a label', () => {
    expect(labelled([plain, over], 'over quota')).toEqual([over]);
    expect(labelled([plain, over], '')).toEqual([plain, over]);
  });
});
