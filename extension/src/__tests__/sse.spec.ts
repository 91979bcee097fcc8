import { EventParser } from '../sse';

const STREAM =
  ': hello\n\nid: 7\nevent: job\ndata: {"a":1}\n\ndata: two\ndata: lines\n\nevent: x\n\nretry: 5\r\nid: 9\r\ndata:no space\r\n\r\n';

const EVENTS = [
  { type: 'job', id: '7', data: '{"a":1}' },
  { type: 'message', id: '7', data: 'two\nlines' },
  { type: 'message', id: '9', data: 'no space' }
];

describe('an event stream', () => {
  it('gives the same events however it is cut into pieces', () => {
    for (let width = 1; width <= STREAM.length; width += 1) {
      const parser = new EventParser();
      const events = [];
      for (let i = 0; i < STREAM.length; i += width) {
        events.push(...parser.push(STREAM.slice(i, i + width)));
      }
      // A carriage return at the very end waits for what follows it.
      events.push(...parser.push('\n'));
      expect(events).toEqual(EVENTS);
    }
  });

  it('holds an event back until its empty line', () => {
    const parser = new EventParser();
    expect(parser.push('data: x\n')).toEqual([]);
    expect(parser.push('\n')).toHaveLength(1);
  });
});
