/**
 * Follow a stream only while the page is visible: browsers allow six connections to a server, which
 * a few hidden tabs would use up.
 */
import { follow, IFollowOptions } from './stream';

/** Delay before a hidden page closes its streams, in milliseconds. */
export const HIDDEN_MS = 30_000;

/** Follow a stream like `follow`. A page that becomes visible continues after its last event ID. */
export function followWhileVisible(options: IFollowOptions): void {
  let after = options.after ?? null;
  let current: AbortController | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isDone = false;

  const begin = () => {
    const mine = (current = new AbortController());
    void follow({
      ...options,
      after,
      signal: mine.signal,
      onEvent: event => {
        after = event.id ?? after;
        return options.onEvent(event);
      }
    }).then(() => {
      isDone ||= !mine.signal.aborted; // the stream ended, and the page was not hidden
    });
  };
  const letGo = () => {
    current?.abort();
    current = null;
  };
  const onVisibility = () => {
    clearTimeout(timer);
    if (document.hidden) {
      timer = setTimeout(letGo, HIDDEN_MS);
    } else if (!current && !isDone) {
      begin();
    }
  };
  const end = () => {
    clearTimeout(timer);
    document.removeEventListener('visibilitychange', onVisibility);
    letGo();
  };

  document.addEventListener('visibilitychange', onVisibility);
  options.signal.addEventListener('abort', end, { once: true });
  begin();
}
