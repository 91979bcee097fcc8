/**
 * Typed calls to the server extension. The transport is handed in (`connection.ts`), so that
 * this module knows neither widget nor JupyterLab.
 */
import type {
  IChangeRequest,
  IJob,
  IJobDetail,
  IPreparation,
  IQuota,
  IResult,
  ISendRequest,
  IStatus,
  ISubmission,
  Numbers
} from './tokens';

/** Send a request to a path below the server extension's prefix. */
export type Transport = (path: string, init?: RequestInit) => Promise<Response>;

/** Verbs on one job. */
export type Verb = 'pause' | 'resume' | 'cancel';

/** An answer that is not the one asked for; the message is a sentence for the user. */
export class ApiError extends Error {
  constructor(
    /** HTTP status, 0 where there was no answer. */
    readonly status: number,
    readonly code: string,
    message: string,
    readonly field: string | null = null,
    readonly numbers: Numbers = {}
  ) {
    super(message);
    this.name = 'ApiError';
  }

  /** Whether the request itself was judged and refused, so that nothing was done. */
  get refused(): boolean {
    return this.status >= 400 && this.status < 500 && this.status !== 408;
  }
}

/** Code of the error where the notebook server lacks the server extension. */
export const NO_EXTENSION = 'no-extension';

const NOT_REACHED =
  'The notebook server does not answer. Jobs go on running; check the network, the page tries again by itself.';
const POOL_SILENT =
  'The training pool does not answer. Jobs go on running; the page asks again by itself.';
const NO_EXTENSION_TEXT =
  'This notebook server has no benchpool extension: ask for an image with benchpool, or run “pip install benchpool” and restart the server.';

export class Api {
  constructor(private readonly _transport: Transport) {}

  jobs(all: boolean): Promise<IJob[]> {
    return this._json(`api/v1/jobs${all ? '?all=true' : ''}`);
  }

  job(id: string): Promise<IJobDetail> {
    return this._json(`api/v1/jobs/${segment(id)}`);
  }

  act(id: string, verb: Verb): Promise<IJob> {
    return this._json(`api/v1/jobs/${segment(id)}/${verb}`, post({}));
  }

  change(id: string, wanted: IChangeRequest): Promise<IJob> {
    return this._json(`api/v1/jobs/${segment(id)}/change`, post(wanted));
  }

  submission(id: string): Promise<ISubmission> {
    return this._json(`api/v1/jobs/${segment(id)}/submission`);
  }

  /** Send once more what a job was sent with; `key` makes a repeat harmless. */
  async again(id: string, key: string): Promise<IJob> {
    return this._json('api/v1/jobs', post({ ...(await this.submission(id)), key }));
  }

  quota(): Promise<IQuota> {
    return this._json('api/v1/quota');
  }

  status(): Promise<IStatus> {
    return this._json('api/v1/status');
  }

  prepare(request: ISendRequest, signal?: AbortSignal): Promise<IPreparation> {
    return this._json('prepare', { ...post(request), signal: signal ?? null });
  }

  send(request: ISendRequest, key: string): Promise<IJob> {
    return this._json('send', post({ ...request, key }));
  }

  result(id: string): Promise<IResult> {
    return this._json(`result?job=${segment(id)}`);
  }

  /** Open the stream of changes from after event `after`. */
  events(after: string | null, signal: AbortSignal): Promise<Response> {
    const query = after === null ? '' : `?after=${segment(after)}`;
    return this._ok(`api/v1/events${query}`, streaming(signal));
  }

  /** Open the live log of one worker of one attempt from a byte offset. */
  logStream(place: ILogPlace, offset: string | number, signal: AbortSignal): Promise<Response> {
    return this._ok(`${logPath(place, 'logs/stream')}&offset=${offset}`, streaming(signal));
  }

  /** A log's whole text, read piece by piece; for download and copy. */
  async log(place: ILogPlace): Promise<Blob> {
    const pieces: Blob[] = [];
    let offset = 0;
    for (;;) {
      const response = await this._ok(`${logPath(place, 'logs')}&offset=${offset}`);
      const piece = await response.blob();
      pieces.push(piece);
      const next = Number(response.headers.get('Benchpool-Log-Next') ?? offset + piece.size);
      if (next <= offset || piece.size === 0) {
        return new Blob(pieces, { type: 'text/plain' });
      }
      offset = next;
    }
  }

  private async _json<T>(path: string, init?: RequestInit): Promise<T> {
    const response = await this._ok(path, init);
    return (await response.json()) as T;
  }

  private async _ok(path: string, init?: RequestInit): Promise<Response> {
    const response = await this._reach(path, init);
    if (!response.ok) {
      throw await errorOf(response);
    }
    return response;
  }

  private async _reach(path: string, init?: RequestInit): Promise<Response> {
    try {
      return await this._transport(path, init);
    } catch (error) {
      if (init?.signal?.aborted) {
        throw error;
      }
      throw new ApiError(0, 'unreachable', NOT_REACHED);
    }
  }
}

/** Which log: one worker of one attempt of one job. */
export interface ILogPlace {
  job: string;
  attempt: number;
  worker: number;
}

function logPath(place: ILogPlace, end: string): string {
  return `api/v1/jobs/${segment(place.job)}/${end}?attempt=${place.attempt}&worker=${place.worker}`;
}

function segment(text: string): string {
  return encodeURIComponent(text);
}

function post(body: object): RequestInit {
  const headers = { 'Content-Type': 'application/json' };
  return { method: 'POST', headers, body: JSON.stringify(body) };
}

function streaming(signal: AbortSignal): RequestInit {
  return { signal, headers: { Accept: 'text/event-stream' } };
}

/** Turn an answer into its error: the service's own words, else a sentence by status. */
async function errorOf(response: Response): Promise<ApiError> {
  const body = (await response.json().catch(() => null)) as unknown;
  const known = errorObject(body);
  if (known?.code === 'not-reachable') {
    return new ApiError(response.status, known.code, POOL_SILENT); // its own words are a terminal's
  }
  if (known) {
    return new ApiError(
      response.status,
      known.code,
      known.message,
      known.field ?? null,
      known.numbers ?? {}
    );
  }
  const code = response.status === 404 ? NO_EXTENSION : `http-${response.status}`;
  return new ApiError(response.status, code, sentence(response.status));
}

interface IErrorObject {
  code: string;
  message: string;
  field?: string | null;
  numbers?: Numbers;
}

function errorObject(body: unknown): IErrorObject | null {
  const error = (body as { error?: unknown } | null)?.error;
  const shape = error as Partial<IErrorObject> | null | undefined;
  return typeof shape?.message === 'string' && typeof shape.code === 'string'
    ? (shape as IErrorObject)
    : null;
}

function sentence(status: number): string {
  if (status === 404) {
    return NO_EXTENSION_TEXT;
  }
  if (status === 401 || status === 403) {
    return `The notebook server refused the request (HTTP ${status}): log in again in another tab, then try again here.`;
  }
  if (status === 500) {
    return 'The notebook server failed at this request (HTTP 500). Its log has the reason: try again, or show it to an administrator.';
  }
  return `The training pool does not answer (HTTP ${status}). Jobs go on running; the page tries again by itself.`;
}
