import { changeLine, unrecordedNote } from '../runChangesWords';

describe('a change between runs', () => {
  it('is a line with the values before and after', () => {
    const numpy = { area: 'package', name: 'numpy', before: '2.0.0', after: '2.1.0' };
    expect(changeLine(numpy)).toBe('package numpy: 2.0.0 → 2.1.0');
    const image = { area: 'environment', name: 'image', before: null, after: 'lab/notebook:2' };
    expect(changeLine(image)).toBe('image: – → lab/notebook:2');
  });

  it('names the runs without a recorded environment', () => {
    expect(unrecordedNote({ unrecorded: [] })).toBe('');
    expect(unrecordedNote({ unrecorded: ['3fk2hq7a9x', '9dm1xw0c2b'] })).toContain(
      '3fk2hq7a and 9dm1xw0c have no environment.json'
    );
  });
});
