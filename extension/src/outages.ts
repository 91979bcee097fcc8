/** Messages about outages between page and pool, one sentence or two each. */

/** The notebook server is not reachable. */
export const NO_SERVER =
  'The notebook server does not answer. Jobs keep running. Check the network; this page retries automatically.';

/** The notebook server responds, but the pool is not reachable from it. */
export const NO_POOL =
  'The training pool does not answer. Jobs keep running; this page retries automatically.';

/** Status bar text while the pool is not reachable. */
export const NO_POOL_SHORT = 'train: pool not reachable';

/** Send dialog text while the pool is not reachable. */
export const NO_PREVIEW = 'The pool does not answer, so the start is not known. Send tries again.';

export const MISSING_EXTENSION =
  'This notebook server has no benchpool extension. Use an image with benchpool, or run “pip install benchpool” and restart the server.';

export const STREAM_CUT =
  'The event stream was interrupted. Jobs keep running; this page retries automatically.';

export const LOG_CUT = 'The log was interrupted; retrying.';

export function unreadable(error: unknown): string {
  return `The response is invalid: ${String(error)}`;
}

/** Return the message for a response without an error object, by its HTTP status. */
export function httpFailure(status: number): string {
  if (status === 404) {
    return MISSING_EXTENSION;
  }
  if (status === 401 || status === 403) {
    return `The notebook server refused the request (HTTP ${status}). Log in again in another tab, then try again here.`;
  }
  if (status === 500) {
    return 'The notebook server failed at this request (HTTP 500). Try again, or show its log to an administrator.';
  }
  return `The training pool does not answer (HTTP ${status}). Jobs keep running; this page retries automatically.`;
}
