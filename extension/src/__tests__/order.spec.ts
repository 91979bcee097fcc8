import { settle } from '../order';

describe('the order of rows', () => {
  it('is the wanted one while nobody points at it', () => {
    expect(settle(['a'], ['b', 'a'], false)).toEqual({ shown: ['b', 'a'], held: 0 });
  });

  it('stands still under the pointer and counts what is new', () => {
    expect(settle(['a', 'b'], ['c', 'b', 'a'], true)).toEqual({ shown: ['a', 'b'], held: 1 });
  });

  it('lets removed rows go also under the pointer', () => {
    expect(settle(['a', 'b'], ['b'], true)).toEqual({ shown: ['b'], held: 0 });
  });
});
