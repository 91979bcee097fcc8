/** Command IDs, as used by settings, menus and shortcuts. */
export const SEND = 'benchpool:send';
export const SEND_NOTEBOOK = 'benchpool:send-notebook';
export const SEND_FILE = 'benchpool:send-file';
export const SHOW_JOBS = 'benchpool:show-jobs';
export const NOTIFICATIONS = 'benchpool:notifications';
export const EXAMPLE = 'benchpool:example';
export const OPEN_JOB = 'benchpool:open-job';
export const OPEN_RESULT = 'benchpool:open-result';
export const BENCH = 'benchpool:bench';
