import { settle } from '../order';

describe('the order of rows', () => {
  it('is the wanted order without a pointer over the list', () => {
    expect(settle(['a'], ['b', 'a'], false)).toEqual({ shown: ['b', 'a'], held: 0 });
  });

  it('is kept under the pointer, and new rows are counted', () => {
    expect(settle(['a', 'b'], ['c', 'b', 'a'], true)).toEqual({ shown: ['a', 'b'], held: 1 });
  });

  it('drops removed rows under the pointer', () => {
    expect(settle(['a', 'b'], ['b'], true)).toEqual({ shown: ['b'], held: 0 });
  });
});
