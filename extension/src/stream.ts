/**
 * Client for server-sent events over fetch: reconnects after each end, failure or silence, and
 * continues after the last event ID.
 */
import { createParser, type EventSourceMessage } from 'eventsource-parser';

export interface IServerEvent {
  /** Event type, or `message` if the server sets none. */
  type: string;
  /** Last event ID up to this event, also from an earlier connection, or null. */
  id: string | null;
  data: string;
}

/** Delays between connection attempts, in milliseconds. The last one repeats. */
export const BACKOFF_MS = [500, 1000, 2000, 4000] as const;

/** Timeout of a silent stream, in milliseconds. The service sends comments more often. */
export const SILENCE_MS = 60_000;

export interface IFollowOptions {
  /** Open the stream after an event ID. Must reject for an error response. */
  open(after: string | null, signal: AbortSignal): Promise<Response>;
  /** Handle an event. Return false to stop following. */
  onEvent(event: IServerEvent): boolean | void;
  onOpen?(): void;
  /** Handle a failure. Return false to stop following. */
  onFailure?(error: Error): boolean | void;
  signal: AbortSignal;
  /** Event ID to start after. */
  after?: string | null;
  backoff?: readonly number[];
  silenceMs?: number;
}

/** Follow the stream until `signal` is aborted or a callback returns false. */
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

/** Read one connection to its end. Return true if a callback stopped it. */
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
      throw new Error('the response has no body');
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
    timer = setTimeout(() => reject(new Error(`no data for ${limitMs / 1000} s`)), limitMs);
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
