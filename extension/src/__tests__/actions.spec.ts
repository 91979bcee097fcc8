import { Notification } from '@jupyterlab/apputils';
import { Signal } from '@lumino/signaling';
import { JobActions } from '../actions';
import type { JobsModel } from '../model';
import type { IJobChange } from '../tokens';
import { job } from './builders';

jest.mock('@jupyterlab/apputils', () => ({
  Notification: { success: jest.fn(() => 'told'), dismiss: jest.fn() }
}));
jest.mock('../formDialog', () => ({}));

describe('what is said of a job that was sent', () => {
  it('goes with its Undo when the job has ended, and stays while it runs', () => {
    const model = {} as { jobChanged: Signal<object, IJobChange> };
    model.jobChanged = new Signal(model);
    const actions = new JobActions(model as unknown as JobsModel, () => undefined);
    const running = job({ state: 'running' });
    actions.sent(running);
    expect(Notification.success).toHaveBeenCalledTimes(1);
    model.jobChanged.emit({ job: running, previous: job({ state: 'starting' }) });
    expect(Notification.dismiss).not.toHaveBeenCalled();
    model.jobChanged.emit({ job: job({ state: 'failed' }), previous: running });
    expect(Notification.dismiss).toHaveBeenCalledWith('told');
  });
});
