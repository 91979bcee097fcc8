import type { IJob, IPreparation, IQuota, IStatus } from '../tokens';

export const NOW = Date.parse('2026-11-21T12:00:00Z');

export function at(minutes: number): string {
  return new Date(NOW + minutes * 60_000).toISOString();
}

export function job(change: Partial<IJob> = {}): IJob {
  return {
    id: 'a'.repeat(26),
    name: 'resnet',
    project: 'susan',
    user: 'susan',
    state: 'running',
    reason: null,
    gpus: 4,
    workers: 1,
    min_workers: 1,
    priority: 50,
    preemptible: true,
    over_quota: false,
    attempt: 1,
    submitted: at(-30),
    started: at(-20),
    ended: null,
    exit_code: null,
    progress: null,
    estimated_start: null,
    preemptions: [],
    pause: null,
    time_limit_s: null,
    url: '/services/benchpool/jobs/a',
    actions: ['pause', 'cancel', 'change'],
    tags: [],
    ...change
  };
}

export function quota(change: Partial<IQuota> = {}): IQuota {
  return {
    user: 'susan',
    build: { quota: 2, rule: 'user', held: [{ server: '', gpus: ['GPU-1'] }], free: 1 },
    projects: [{ name: 'susan', quota: 2, fair_share: 2, allocated: 2, limit: null, waiting: 0 }],
    ...change
  };
}

export function status(): IStatus {
  return {
    text: '4 of 8 GPUs work.',
    simulated: true,
    counts: {},
    gpus: [],
    projects: [],
    queue_length: 0,
    running: 1,
    bench_line: 0,
    health: { ok: true, problems: [], passes: 1, last_pass_ms: 1 }
  };
}

export function gpu(model: string, node: string): IStatus['gpus'][number] {
  return {
    uuid: `${node}/${model}`,
    index: 0,
    model,
    node,
    memory_mib: null,
    state: 'free',
    job: null,
    server: null,
    user: null,
    simulated: true,
    note: null
  };
}

export function preparation(change: Partial<IPreparation> = {}): IPreparation {
  return {
    name: 'train',
    cells: [],
    problems: [],
    interpreter: '/usr/bin/python3',
    working_dir: '/work',
    output_dir: 'benchpool-results/train',
    files: null,
    command: 'benchpool submit --gpus 1',
    preview: null,
    refusal: null,
    quota: null,
    checkpoint: null,
    kernel: null,
    parameters: [],
    swept: {},
    ...change
  };
}

/** Return a response of the notebook server. */
export function answer(body: unknown, init: { status?: number } = {}): Response {
  const code = init.status ?? 200;
  return {
    ok: code < 400,
    status: code,
    headers: new Map() as unknown as Headers,
    json: () => (body instanceof Error ? Promise.reject(body) : Promise.resolve(body))
  } as unknown as Response;
}

/** Stream whose chunks are pushed by the test. */
export class Wire {
  readonly response: Response;

  constructor() {
    this.response = {
      ok: true,
      status: 200,
      body: { getReader: () => ({ read: () => this._read() }) }
    } as unknown as Response;
  }

  push(text: string): void {
    this.bytes(new TextEncoder().encode(text));
  }

  bytes(value: Uint8Array): void {
    this._give({ done: false, value });
  }

  event(type: string, data: unknown, id?: number): void {
    this.push(
      `${id === undefined ? '' : `id: ${id}\n`}event: ${type}\ndata: ${JSON.stringify(data)}\n\n`
    );
  }

  end(): void {
    this._give({ done: true, value: undefined });
  }

  private _give(piece: ReadableStreamReadResult<Uint8Array>): void {
    const waiting = this._waiting.shift();
    if (waiting) {
      waiting(piece);
    } else {
      this._pieces.push(piece);
    }
  }

  private _read(): Promise<ReadableStreamReadResult<Uint8Array>> {
    const piece = this._pieces.shift();
    return piece ? Promise.resolve(piece) : new Promise(resolve => this._waiting.push(resolve));
  }

  private readonly _pieces: ReadableStreamReadResult<Uint8Array>[] = [];
  private readonly _waiting: ((piece: ReadableStreamReadResult<Uint8Array>) => void)[] = [];
}

/** Run all pending tasks, and timers up to `ms` milliseconds. */
export async function settle(ms = 0): Promise<void> {
  await jest.advanceTimersByTimeAsync(ms);
}
