/**
 * A parser of server-sent events as text arrives in pieces (WHATWG HTML, section 9.2.6).
 */

export interface IServerEvent {
  /** The type of the event; `message` where the server names none. */
  type: string;
  /** The last id seen up to this event, or null. */
  id: string | null;
  data: string;
}

export class EventParser {
  /**
   * Take the next piece of the stream and return the events that it completes.
   */
  push(piece: string): IServerEvent[] {
    this._buffer += piece;
    const events: IServerEvent[] = [];
    for (;;) {
      const line = this._nextLine();
      if (line === null) {
        return events;
      }
      const event = this._take(line);
      if (event) {
        events.push(event);
      }
    }
  }

  private _nextLine(): string | null {
    const end = this._buffer.search(/[\r\n]/);
    if (end < 0) {
      return null;
    }
    const isReturn = this._buffer[end] === '\r';
    if (isReturn && end === this._buffer.length - 1) {
      return null; // its line feed may be in the next piece
    }
    const line = this._buffer.slice(0, end);
    const two = isReturn && this._buffer[end + 1] === '\n';
    this._buffer = this._buffer.slice(end + (two ? 2 : 1));
    return line;
  }

  private _take(line: string): IServerEvent | null {
    if (line === '') {
      return this._dispatch();
    }
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'data') {
      this._data.push(value);
    } else if (field === 'event') {
      this._type = value;
    } else if (field === 'id' && !value.includes('\0')) {
      this._id = value;
    }
    return null;
  }

  private _dispatch(): IServerEvent | null {
    const type = this._type || 'message';
    const data = this._data;
    this._type = '';
    this._data = [];
    return data.length ? { type, id: this._id, data: data.join('\n') } : null;
  }

  private _buffer = '';
  private _data: string[] = [];
  private _type = '';
  private _id: string | null = null;
}
