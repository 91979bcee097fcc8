/** Schedule as typed in the dialog: times and time zone. Pure. */
import type { IAccepted, ISchedule, ISendRequest } from './tokens';

export interface IScheduleDraft {
  /** Words or five fields of cron, or an empty string for one job now. */
  every: string;
  zone: string;
}

/** Return the draft of one job now, with the time zone of the reader. */
export function noSchedule(): IScheduleDraft {
  return { every: '', zone: Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC' };
}

/** Return whether times are typed. */
export function isScheduled(draft: IScheduleDraft): boolean {
  return draft.every.trim() !== '';
}

/** Return the request field, or an empty object without times. */
export function scheduleOf(draft: IScheduleDraft): Pick<ISendRequest, 'schedule'> {
  return isScheduled(draft)
    ? { schedule: { when: draft.every.trim(), zone: draft.zone.trim() || 'UTC' } }
    : {};
}

/** Format a time of the service on the clock of its schedule: `Tue 24 Nov 02:00`. */
export function clockTime(time: string): string {
  // The text has the clock of the schedule's zone, so its offset is left out.
  const clock = new Date(`${time.slice(0, 19)}Z`);
  const day = clock.toLocaleDateString('en-GB', {
    weekday: 'short',
    day: 'numeric',
    month: 'short',
    timeZone: 'UTC'
  });
  return `${day.replace(',', '')} ${time.slice(11, 16)}`;
}

/** Return whether an accepted submission is a schedule. */
export function isSchedule(accepted: IAccepted): accepted is ISchedule {
  return 'cron' in accepted;
}

/** Return the confirmation of a new schedule. */
export function createdText({ name, next, zone }: ISchedule): string {
  const first =
    next[0] === undefined ? '' : ` It is sent first on ${clockTime(next[0])} (${zone}).`;
  return `“${name}” is scheduled.${first}`;
}
