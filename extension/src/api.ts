/**
 * Typed calls to the server extension. The transport is an argument (`connection.ts`), so this
 * module depends on neither widgets nor JupyterLab.
 */
import type * as Page from './generated/page';
import type * as Pool from './generated/pool';
import { ACCESS } from './generated/actions';
import type { FilledAction } from './generated/actions';
import { httpFailure, NO_POOL, NO_SERVER } from './outages';
import type {
  IBenchNow,
  IGpuUse,
  IJob,
  IJobDetail,
  IJobMetrics,
  IPreparation,
  IQuota,
  IResult,
  ISchedule,
  ISent,
  ISendRequest,
  IStatus,
  IRunChanges,
  ISubmission,
  ISweep,
  IAccessRequest,
  Numbers
} from './tokens';

/** Function that sends a request to a path below the prefix of the server extension. */
export type Transport = (path: string, init?: RequestInit) => Promise<Response>;

/** Paths of the server extension and paths that it forwards to the pool. */
type Paths = Page.paths & Pool.paths;

type Method = 'get' | 'post';

/** Paths that support a method. */
type PathWith<M extends Method> = {
  [P in keyof Paths]: Paths[P][M] extends { responses: object } ? P : never;
}[keyof Paths];

type Good<R> = R[keyof R & (200 | 201)];

/** Body of a successful response, from the OpenAPI documents. */
type Answer<P extends keyof Paths, M extends Method> = Paths[P][M] extends { responses: infer R }
  ? Good<R> extends { content: { 'application/json': infer T } }
    ? T
    : never
  : never;

/** Actions on project membership. */
export type AccessAction = keyof typeof ACCESS;

/** Actions on one job without a body. */
export type Verb = 'pause' | 'resume' | 'cancel';

/** Error response or missing response. The message is a sentence for the user. */
export class ApiError extends Error {
  constructor(
    /** HTTP status, or 0 without a response. */
    readonly status: number,
    readonly code: string,
    message: string,
    readonly field: string | null = null,
    readonly numbers: Numbers = {}
  ) {
    super(message);
    this.name = 'ApiError';
  }

  /** Whether the server rejected the request, so that it had no effect. */
  get refused(): boolean {
    return this.status >= 400 && this.status < 500 && this.status !== 408;
  }
}

/** Error code for a notebook server without the server extension. */
export const NO_EXTENSION = 'no-extension';

export class Api {
  constructor(private readonly _transport: Transport) {}

  jobs(all: boolean): Promise<IJob[]> {
    return this._get('/jobs', '', all ? '?all=true' : '');
  }

  job(id: string): Promise<IJobDetail> {
    return this._get('/jobs/{job}', id);
  }

  /** Return the metrics that a job reported, with at most `points` points per curve. */
  metrics(id: string, points: number): Promise<IJobMetrics> {
    return this._get('/jobs/{job}/metrics', id, `?points=${points}`);
  }

  act(id: string, verb: Verb): Promise<IJob> {
    return this._post(`/jobs/{job}/${verb}`, {}, id);
  }

  /** Run an action with its filled-in fields. */
  fill(id: string, action: FilledAction, filled: object): Promise<IJob> {
    return this._post(`/jobs/{job}/${action}`, filled, id);
  }

  /** Return a sweep with its trials, best first. */
  sweep(id: string): Promise<ISweep> {
    return this._get('/sweeps/{sweep}', id);
  }

  /** Start no further trial, and end all, or all but the best, unless they may finish. */
  stopSweep(id: string, how: Partial<Pool.SweepStop> = {}): Promise<ISweep> {
    return this._post('/sweeps/{sweep}/stop', how, id);
  }

  submission(id: string): Promise<ISubmission> {
    return this._get('/jobs/{job}/submission', id);
  }

  /** Run a job again unchanged. `key` is the idempotency key. */
  again(id: string, key: string): Promise<IJob> {
    return this._post('/jobs/{job}/again', { key }, id);
  }

  /** Return the differences to the previous job of the same user, project and name. */
  changes(id: string): Promise<IRunChanges> {
    return this._get('/jobs/{job}/changes', id);
  }

  quota(): Promise<IQuota> {
    return this._get('/quota');
  }

  /** Return the access requests of the user and the requests that the user can decide. */
  accessRequests(): Promise<IAccessRequest[]> {
    return this._get('/access');
  }

  /** Request access to a project, add a member, or decline a request. */
  async access(action: AccessAction, body: object): Promise<void> {
    await this._post(ACCESS[action].path, body);
  }

  /** Return the use of the GPUs that the user holds. */
  gpuUse(): Promise<IGpuUse[]> {
    return this._get('/gpus', '', '?mine=true');
  }

  /** Return the kernels and terminals of this notebook server and the next action on its GPUs. */
  bench(): Promise<IBenchNow> {
    return this._get('/bench');
  }

  keepBench(): Promise<IBenchNow> {
    return this._post('/bench/keep', {});
  }

  releaseBench(): Promise<IBenchNow> {
    return this._post('/bench/give-back', {});
  }

  status(): Promise<IStatus> {
    return this._get('/status');
  }

  prepare(request: ISendRequest, signal?: AbortSignal): Promise<IPreparation> {
    return this._post('/prepare', request, '', signal);
  }

  send(request: ISendRequest, key: string): Promise<IJob> {
    return this._post('/send', { ...request, key });
  }

  /** Create a schedule of the request, which has times. */
  schedule(request: ISendRequest, key: string): Promise<ISchedule> {
    return this._post('/schedule', { ...request, key });
  }

  removeSchedule(id: string): Promise<ISchedule> {
    return this._post('/schedules/{schedule}/remove', {}, id);
  }

  /** Return the place of the example notebook. The server writes it if it is missing. */
  example(): Promise<Answer<'/example', 'post'>> {
    return this._post('/example', {});
  }

  /**
   * Return the submission of a job, the place of its failure, and the differences to the current
   * files. With `file`, a file name of a traceback, the path is that of this file.
   */
  sent(id: string, file: string | null = null): Promise<ISent> {
    const of = file === null ? '' : `&file=${encodeURIComponent(file)}`;
    return this._get('/sent', '', `?job=${segment(id)}${of}`);
  }

  result(id: string): Promise<IResult> {
    return this._get('/result', '', `?job=${segment(id)}`);
  }

  /** Open the event stream after event ID `after`. */
  events(after: string | null, signal: AbortSignal): Promise<Response> {
    const query = after === null ? '' : `?after=${segment(after)}`;
    return this._ok(`${pathOf('/events')}${query}`, streaming(signal));
  }

  /** Open the live log of one worker and attempt from a byte offset. */
  logStream(place: ILogPlace, offset: string | number, signal: AbortSignal): Promise<Response> {
    return this._ok(
      `${logPath(place, '/jobs/{job}/logs/stream')}&offset=${offset}`,
      streaming(signal)
    );
  }

  /** Read the whole log in parts, for download and copy. */
  async log(place: ILogPlace): Promise<Blob> {
    const pieces: Blob[] = [];
    let offset = 0;
    for (;;) {
      const response = await this._ok(`${logPath(place, '/jobs/{job}/logs')}&offset=${offset}`);
      const piece = await response.blob();
      pieces.push(piece);
      const next = Number(response.headers.get('Benchpool-Log-Next') ?? offset + piece.size);
      if (next <= offset || piece.size === 0) {
        return new Blob(pieces, { type: 'text/plain' });
      }
      offset = next;
    }
  }

  private async _get<P extends PathWith<'get'>>(
    path: P,
    job = '',
    query = ''
  ): Promise<Answer<P, 'get'>> {
    const response = await this._ok(`${pathOf(path, job)}${query}`);
    return (await response.json()) as Answer<P, 'get'>;
  }

  private async _post<P extends PathWith<'post'>>(
    path: P,
    body: object,
    job = '',
    signal: AbortSignal | null = null
  ): Promise<Answer<P, 'post'>> {
    const response = await this._ok(pathOf(path, job), { ...post(body), signal });
    return (await response.json()) as Answer<P, 'post'>;
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
      throw new ApiError(0, 'unreachable', NO_SERVER);
    }
  }
}

/** Key of a log: job, attempt and worker. */
export interface ILogPlace {
  job: string;
  attempt: number;
  worker: number;
}

function logPath(place: ILogPlace, path: '/jobs/{job}/logs' | '/jobs/{job}/logs/stream'): string {
  return `${pathOf(path, place.job)}?attempt=${place.attempt}&worker=${place.worker}`;
}

const OWN: ReadonlySet<string> = new Set<keyof Page.paths>([
  '/prepare',
  '/send',
  '/schedule',
  '/result',
  '/sent',
  '/example',
  '/bench',
  '/bench/keep',
  '/bench/give-back'
]);

/**
 * Return a path below the prefix of the server extension. `id` fills the placeholder of the path.
 */
function pathOf(path: keyof Paths, id = ''): string {
  const filled = path.slice(1).replace(/\{\w+\}/, segment(id));
  return OWN.has(path) ? filled : `api/v1/${filled}`;
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

/** Convert a response to an error: the message of the service, else a sentence for the status. */
async function errorOf(response: Response): Promise<ApiError> {
  const body = (await response.json().catch(() => null)) as unknown;
  const known = errorObject(body);
  if (known?.code === 'not-reachable') {
    return new ApiError(response.status, known.code, NO_POOL); // the message of the service is for a terminal
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
  return new ApiError(response.status, code, httpFailure(response.status));
}

/** Error object. A proxy may have dropped its field and numbers. */
type SomeError = Pick<Pool.ErrorBody, 'code' | 'message'> & Partial<Pool.ErrorBody>;

function errorObject(body: unknown): SomeError | null {
  const shape = (body as { error?: Partial<Pool.ErrorBody> | null } | null)?.error;
  return typeof shape?.message === 'string' && typeof shape.code === 'string'
    ? (shape as SomeError)
    : null;
}
