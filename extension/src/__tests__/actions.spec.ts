import { Notification } from '@jupyterlab/apputils';
import { Signal } from '@lumino/signaling';
import { JobActions } from '../actions';
import type { JobsModel } from '../model';
import type { IJobChange } from '../tokens';
import { job } from './builders';

jest.mock('@jupyterlab/apputils', () => ({
  Notification: { success: jest.fn(() => 'toast-1'), dismiss: jest.fn() }
}));
jest.mock('../formDialog', () => ({}));

describe('the notification of a sent job', () => {
  it('is dismissed when the job ends', () => {
    const model = {} as { jobChanged: Signal<object, IJobChange> };
    model.jobChanged = new Signal(model);
    const actions = new JobActions(model as unknown as JobsModel, () => undefined);
    const running = job({ state: 'running' });
    actions.sent(running);
    expect(Notification.success).toHaveBeenCalledTimes(1);
    model.jobChanged.emit({ job: running, previous: job({ state: 'starting' }) });
    expect(Notification.dismiss).not.toHaveBeenCalled();
    model.jobChanged.emit({ job: job({ state: 'failed' }), previous: running });
    expect(Notification.dismiss).toHaveBeenCalledWith('toast-1');
  });
});
