/**
 * Notifications stand beside the panel while it is shown, where the window has room for that: over
 * it they hide the rows that they are about.
 */

/** A notification with its margins, in pixels. */
const ROOM = 420;

interface IEdges {
  left: number;
  right: number;
}

/** By how many pixels notifications move to the left, for a panel in a window so wide. */
export function shiftFor(panel: IEdges | null, windowWidth: number): number {
  if (!panel || panel.right < windowWidth / 2 || panel.left < ROOM) {
    return 0;
  }
  return windowWidth - panel.left;
}

/** Have notifications stand beside the panel; null while it is hidden. */
export function standBeside(panel: IEdges | null): void {
  const shift = shiftFor(panel, window.innerWidth);
  document.body.classList.toggle('bp-mod-toastsBeside', shift > 0);
  document.body.style.setProperty('--bp-toasts-shift', `${shift}px`);
}
