/**
 * Follow a stream only while somebody may look: browsers allow six connections to a server at a
 * time, which a few forgotten tabs would use up.
 */
import { follow, IFollowOptions } from './stream';

/** A page hidden for this long lets go of its streams. */
export const HIDDEN_MS = 30_000;

/** As `follow`; a page that comes back goes on after the last id that it has seen. */
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
      isDone ||= !mine.signal.aborted; // ended by itself, not by hiding
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
