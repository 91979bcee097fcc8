/** Messages about outages between page and pool, one sentence or two each. */

/** The notebook server is not reachable. */
export const NO_SERVER =
  'The notebook server does not answer. Jobs go on running; check the network, the page tries again by itself.';

/** The notebook server responds, but the pool is not reachable from it. */
export const NO_POOL =
  'The training pool does not answer. Jobs go on running; the page asks again by itself.';

/** Status bar text while the pool is not reachable. */
export const NO_POOL_SHORT = 'train: pool not reached';

/** Send dialog text while the pool is not reachable. */
export const NO_PREVIEW =
  'The pool does not answer now, so the start is not known yet. Send tries again.';

export const MISSING_EXTENSION =
  'This notebook server has no benchpool extension: ask for an image with benchpool, or run “pip install benchpool” and restart the server.';

export const STREAM_CUT =
  'The stream of changes was interrupted. Jobs go on running; the page tries again by itself.';

export const LOG_CUT = 'The log was interrupted; trying again.';

export function unreadable(error: unknown): string {
  return `The answer is unreadable: ${String(error)}`;
}

/** Return the message for a response without an error object, by its HTTP status. */
export function httpFailure(status: number): string {
  if (status === 404) {
    return MISSING_EXTENSION;
  }
  if (status === 401 || status === 403) {
    return `The notebook server refused the request (HTTP ${status}): log in again in another tab, then try again here.`;
  }
  if (status === 500) {
    return 'The notebook server failed at this request (HTTP 500). Its log has the reason: try again, or show it to an administrator.';
  }
  return `The training pool does not answer (HTTP ${status}). Jobs go on running; the page tries again by itself.`;
}
