import type { KernelMessage } from '@jupyterlab/services';
import { RunLog, storedRun } from '../cellRuns';

function message(
  type: string,
  at: number,
  parent: string | null,
  content: object,
  metadata: object = {}
): KernelMessage.IMessage {
  const date = new Date(Date.UTC(2026, 10, 24, 0, 0, at)).toISOString();
  return {
    header: { msg_type: type, msg_id: `${type}-${at}`, date },
    parent_header: parent === null ? {} : { msg_id: parent },
    metadata,
    content
  } as unknown as KernelMessage.IMessage;
}

/** Record a cell run: requested at `at`, started one second later, ended after `seconds`. */
function run(log: RunLog, cell: string, at: number, seconds: number, status = 'ok'): void {
  const id = `execute_request-${at}`;
  log.record(message('execute_request', at, null, { code: 'x' }, { cellId: cell }));
  if (status !== 'aborted') {
    log.record(message('execute_input', at + 1, id, { execution_count: at }));
  }
  log.record(message('execute_reply', at + 1 + seconds, id, { status }));
}

describe('cell runs', () => {
  it('are listed oldest first with number, duration and result', () => {
    const log = new RunLog();
    run(log, 'a', 1, 10);
    run(log, 'b', 20, 1, 'error');
    run(log, 'a', 30, 3);
    expect(log.of('a', 'x')).toEqual([
      { number: 1, seconds: 10, failed: false, edited: false },
      { number: 30, seconds: 3, failed: false, edited: false }
    ]);
    expect(log.of('b', 'x')).toEqual([{ number: 20, seconds: 1, failed: true, edited: false }]);
  });

  it('exclude cells that were aborted', () => {
    const log = new RunLog();
    run(log, 'a', 1, 0, 'aborted');
    expect(log.of('a', 'x')).toEqual([]);
  });

  it('include the running cell', () => {
    const log = new RunLog();
    log.record(message('execute_request', 1, null, { code: 'x' }, { cellId: 'a' }));
    expect(log.of('a', 'x')).toEqual([]);
    log.record(message('execute_input', 2, 'execute_request-1', { execution_count: 7 }));
    expect(log.of('a', 'x')).toEqual([{ number: 7, seconds: null, failed: false, edited: false }]);
  });

  it('are cleared when the kernel restarts', () => {
    const log = new RunLog();
    run(log, 'a', 1, 10);
    log.record(message('status', 40, null, { execution_state: 'idle' }));
    expect(log.of('a', 'x')).toHaveLength(1);
    log.record(message('status', 41, null, { execution_state: 'restarting' }));
    expect(log.of('a', 'x')).toEqual([]);
  });

  it('mark edited text and list deleted cells', () => {
    const log = new RunLog();
    run(log, 'a', 1, 10);
    run(log, 'b', 20, 1);
    expect(log.of('a', 'y').map(each => each.edited)).toEqual([true]);
    expect(log.gone(['a'])).toEqual([20]);
    expect(log.gone(['a', 'b'])).toEqual([]);
  });

  it('exclude requests without a cell', () => {
    const log = new RunLog();
    log.record(message('execute_request', 1, null, {}));
    log.record(message('execute_reply', 2, 'execute_request-1', { status: 'ok' }));
    expect(log.of('undefined', 'x')).toEqual([]);
  });

  it('are read from the cell metadata of JupyterLab', () => {
    const times = {
      'iopub.execute_input': '2026-11-24T00:00:01Z',
      'shell.execute_reply': '2026-11-24T00:00:05Z'
    };
    const ran = { number: 3, failed: false, edited: false };
    expect(storedRun(times, ran)).toEqual({ ...ran, seconds: 4 });
    expect(storedRun({ 'iopub.execute_input': 'x' }, ran)).toBeNull();
    expect(storedRun(null, ran)).toBeNull();
  });

  it('count as failed if the outputs contain an error, also without times', () => {
    const failed = { number: 3, failed: true, edited: false };
    expect(storedRun(undefined, failed)).toEqual({ ...failed, seconds: null });
  });
});
