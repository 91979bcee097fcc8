/**
 * Follow a stream of server-sent events over fetch for as long as it is wanted: reconnect after
 * every end, failure or silence, and go on after the last id seen.
 */
import { createParser, type EventSourceMessage } from 'eventsource-parser';

export interface IServerEvent {
  /** The type of the event; `message` where the server names none. */
  type: string;
  /** The last id seen up to this event, on this connection or before; null where there is none. */
  id: string | null;
  data: string;
}

/** Waits between attempts in milliseconds; the last one repeats. */
export const BACKOFF_MS = [500, 1000, 2000, 4000] as const;

/** A stream silent for longer than this is opened anew; the service sends comments more often. */
export const SILENCE_MS = 60_000;

export interface IFollowOptions {
  /** Ask for the stream from after the given id; must reject for a refusal. */
  open(after: string | null, signal: AbortSignal): Promise<Response>;
  /** Take one event; answer false to end the following. */
  onEvent(event: IServerEvent): boolean | void;
  onOpen?(): void;
  /** Told about each failure; answer false to give up. */
  onFailure?(error: Error): boolean | void;
  signal: AbortSignal;
  /** Id to begin after. */
  after?: string | null;
  backoff?: readonly number[];
  silenceMs?: number;
}

/** Follow until `signal` is aborted or a callback answers false. */
export async function follow(options: IFollowOptions): Promise<void> {
  const backoff = options.backoff ?? BACKOFF_MS;
  let after = options.after ?? null;
  let failures = 0;
  while (!options.signal.aborted) {
    try {
      const done = await readOnce(options, after, id => {
        after = id;
        failures = 0;
      });
      if (done) {
        return;
      }
    } catch (error) {
      if (options.signal.aborted || options.onFailure?.(asError(error)) === false) {
        return;
      }
    }
    await pause(backoff[Math.min(failures, backoff.length - 1)] ?? 0, options.signal);
    failures += 1;
  }
}

/** Read one connection to its end; true when a callback wants no more. */
async function readOnce(
  options: IFollowOptions,
  after: string | null,
  seen: (id: string | null) => void
): Promise<boolean> {
  const connection = new AbortController();
  const abort = () => connection.abort();
  options.signal.addEventListener('abort', abort, { once: true });
  try {
    const response = await options.open(after, connection.signal);
    if (!response.body) {
      throw new Error('the answer has no body to stream');
    }
    options.onOpen?.();
    return await readEvents(response.body.getReader(), options, after, seen);
  } finally {
    options.signal.removeEventListener('abort', abort);
    connection.abort();
  }
}

async function readEvents(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  options: IFollowOptions,
  after: string | null,
  seen: (id: string | null) => void
): Promise<boolean> {
  let last = after;
  const decoder = new TextDecoder();
  const events: EventSourceMessage[] = [];
  const parser = createParser({ onEvent: event => void events.push(event) });
  const silenceMs = options.silenceMs ?? SILENCE_MS;
  for (;;) {
    const { done, value } = await withinSilence(reader, silenceMs);
    if (done) {
      return false;
    }
    parser.feed(decoder.decode(value, { stream: true }));
    for (const { id, event: type = 'message', data } of events.splice(0)) {
      last = id ?? last;
      seen(last);
      if (options.onEvent({ type, id: last, data }) === false) {
        return true;
      }
    }
  }
}

async function withinSilence(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  limitMs: number
): Promise<ReadableStreamReadResult<Uint8Array>> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`silent for ${limitMs / 1000} s`)), limitMs);
  });
  try {
    return await Promise.race([reader.read(), silence]);
  } finally {
    clearTimeout(timer);
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    const timer = setTimeout(end, ms);
    function end() {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    }
    signal.addEventListener('abort', end, { once: true });
  });
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
