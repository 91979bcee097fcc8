/** Hints for new users at the top of the panel. */
import * as React from 'react';
import type { Hints } from './hints';
import { useChanged } from './hooks';

/** Send shortcut as labelled on the reader's keyboard. */
export const SEND_KEYS = /Mac/i.test(navigator.platform) ? '⇧ ⌘ ⏎' : 'Ctrl + Shift + Enter';

export function HintsBox({ hints }: { hints: Hints }): React.JSX.Element | null {
  useChanged(hints);
  if (!hints.shown) {
    return null;
  }
  return (
    <aside className="bp-Hints" aria-label="Three hints" data-testid="benchpool-hints">
      <ol>
        <li>
          Select cells and press <kbd>{SEND_KEYS}</kbd>: the cells that they need are included, and
          your kernel stays free.
        </li>
        <li>
          Above your quota, you use free GPUs of other projects. When they need them, your job is
          paused and resumes by itself: save with <code>benchpool.checkpoint</code>.
        </li>
        <li>
          You can close this page: jobs keep running, and a notification lists ended jobs when you
          return.
        </li>
      </ol>
      <button type="button" className="bp-Link" onClick={() => void hints.putAway()}>
        Got it
      </button>
    </aside>
  );
}
