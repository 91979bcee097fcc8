import { placesIn } from '../logPlaces';

const TRACEBACK = `ZeroDivisionError  Traceback (most recent call last)
cell 7, line 3
----> 3 f(0)
cell 1, line 2, in f(x)
  File "/home/a/lab/helper.py", line 12, in g
File ~/lab/other.py:8, in h(x)
File ~/env/lib/python3.12/site-packages/torch/nn.py:9, in forward(self)
  File "/opt/lib/python3.11/site-packages/torch/nn.py", line 9, in h
benchpool: cell 7 failed: ZeroDivisionError (line 3)
`;

describe('places in a log', () => {
  it("are lines of cells and of the user's files", () => {
    const places = placesIn(TRACEBACK).flatMap(({ place }) => (place ? [place] : []));
    expect(places).toEqual([
      { cell: 7, file: null, line: 3 },
      { cell: 1, file: null, line: 2 },
      { cell: null, file: '/home/a/lab/helper.py', line: 12 },
      { cell: null, file: '~/lab/other.py', line: 8 }
    ]);
  });

  it('keep the whole text', () => {
    for (const text of [TRACEBACK, '', 'no place', 'cell 1, line 2']) {
      expect(
        placesIn(text)
          .map(piece => piece.text)
          .join('')
      ).toBe(text);
    }
  });
});
