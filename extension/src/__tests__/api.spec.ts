import { Api, ApiError } from '../api';
import { answer, job } from './builders';

function apiWith(...answers: (Response | Error)[]): { api: Api; asked: [string, RequestInit?][] } {
  const asked: [string, RequestInit?][] = [];
  const api = new Api((path, init) => {
    asked.push([path, init]);
    const next = answers.shift()!;
    return next instanceof Error ? Promise.reject(next) : Promise.resolve(next);
  });
  return { api, asked };
}

describe('API calls', () => {
  it('use the routes of the server extension', async () => {
    const { api, asked } = apiWith(
      answer([]),
      answer([]),
      answer(job()),
      answer(job()),
      answer({ files: [] })
    );
    await api.jobs(false);
    await api.jobs(true);
    await api.act('abc', 'pause');
    await api.again('abc', 'k1');
    await api.result('a/b');
    expect(asked.map(([path]) => path)).toEqual([
      'api/v1/jobs',
      'api/v1/jobs?all=true',
      'api/v1/jobs/abc/pause',
      'api/v1/jobs/abc/again',
      'result?job=a%2Fb'
    ]);
    expect(asked[2]![1]!.method).toBe('POST');
  });

  it('send only the changed fields of a job', async () => {
    const { api, asked } = apiWith(answer(job({ priority: 80 })));
    await expect(api.fill('abc', 'change', { priority: 80 })).resolves.toMatchObject({
      priority: 80
    });
    const [path, init] = asked[0]!;
    expect([init!.method, path]).toEqual(['POST', 'api/v1/jobs/abc/change']);
    expect(JSON.parse(init!.body as string)).toEqual({ priority: 80 });
  });

  it('send a new key when a job runs again', async () => {
    const { api, asked } = apiWith(answer(job()));
    await api.again('abc', 'new');
    expect(JSON.parse(asked[0]![1]!.body as string)).toEqual({ key: 'new' });
  });
});

describe('API errors', () => {
  const refusal = {
    error: { code: 'never-fits', message: 'It has 8.', field: 'gpus', numbers: { pool: 8 } }
  };

  it('carry the message, field and numbers of the service', async () => {
    const { api } = apiWith(answer(refusal, { status: 422 }));
    const error = await api.quota().catch((e: unknown) => e as ApiError);
    expect(error).toMatchObject({
      status: 422,
      code: 'never-fits',
      message: 'It has 8.',
      field: 'gpus',
      numbers: { pool: 8 },
      refused: true
    });
  });

  it('name the remedy when the server extension is missing', async () => {
    const { api } = apiWith(answer(new Error('html'), { status: 404 }));
    await expect(api.quota()).rejects.toThrow(/no benchpool extension\. .*pip install/);
  });

  it('report that jobs continue when the server does not answer', async () => {
    const { api } = apiWith(new TypeError('NetworkError'), answer('', { status: 502 }));
    const first = await api.status().catch((e: unknown) => e as ApiError);
    expect(first).toMatchObject({ status: 0, refused: false });
    expect((first as ApiError).message).toMatch(/Jobs keep running/);
    await expect(api.status()).rejects.toThrow(/HTTP 502.*Jobs keep running/);
  });

  it('replace terminal advice when the pool is not reachable', async () => {
    const error = { code: 'not-reachable', message: 'start it with `benchpool up`', numbers: {} };
    const { api } = apiWith(answer({ error }, { status: 503 }));
    await expect(api.quota()).rejects.toThrow(/^The training pool does not answer\. Jobs keep/);
  });

  it('contain neither "unexpected" nor "unknown"', async () => {
    for (const code of [400, 401, 403, 404, 409, 413, 422, 429, 500, 502, 503]) {
      const { api } = apiWith(answer(null, { status: code }));
      const error = await api.status().catch((e: unknown) => e as ApiError);
      expect((error as ApiError).message).not.toMatch(/unexpected|unknown/i);
    }
  });
});
