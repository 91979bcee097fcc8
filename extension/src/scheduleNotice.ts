/** Confirmation of a new schedule, with a link to the page of schedules. */
import { Notification, showErrorMessage } from '@jupyterlab/apputils';
import { schedulesPage } from './addresses';
import { forToast } from './format';
import type { JobsModel } from './model';
import { createdText } from './scheduleDraft';
import type { ISchedule } from './tokens';

/** Display time, in milliseconds: no view of JupyterLab lists the schedule afterwards. */
const SHOWN_MS = 20_000;

export function confirmSchedule(schedule: ISchedule, model: JobsModel): void {
  const page = schedulesPage(model.status);
  const remove = async (): Promise<void> => {
    try {
      await model.api.removeSchedule(schedule.id);
    } catch (error) {
      await showErrorMessage(schedule.name, (error as Error).message);
    }
  };
  Notification.success(forToast(createdText(schedule)), {
    autoClose: SHOWN_MS,
    actions: [
      ...(page
        ? [
            {
              label: 'Show schedules',
              caption: 'Open the page of your schedules',
              callback: () => void window.open(page, '_blank', 'noopener')
            }
          ]
        : []),
      {
        label: 'Undo',
        caption: `Remove the schedule ${schedule.name}`,
        callback: () => void remove()
      }
    ]
  });
}
