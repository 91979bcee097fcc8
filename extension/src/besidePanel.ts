/**
 * Position of notifications beside the visible panel if the window is wide enough. Above the panel
 * they would hide its rows.
 */

/** Width of a notification with its margins, in pixels. */
const ROOM = 420;

interface IEdges {
  left: number;
  right: number;
}

/** Return the shift of notifications to the left for a panel and a window width, in pixels. */
export function shiftFor(panel: IEdges | null, windowWidth: number): number {
  if (!panel || panel.right < windowWidth / 2 || panel.left < ROOM) {
    return 0;
  }
  return windowWidth - panel.left;
}

/** Move notifications beside the panel. `panel` is null while it is hidden. */
export function standBeside(panel: IEdges | null): void {
  const shift = shiftFor(panel, window.innerWidth);
  document.body.classList.toggle('bp-mod-toastsBeside', shift > 0);
  document.body.style.setProperty('--bp-toasts-shift', `${shift}px`);
}
