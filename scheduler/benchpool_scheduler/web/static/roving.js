// One tab stop per row of GPU squares. The arrow keys move within the row.

export function roving() {
  for (const list of document.querySelectorAll("[data-roving]")) settle(list);
}

export function walkSquares() {
  document.addEventListener("keydown", walk);
  document.addEventListener("focusin", (event) => {
    const list = event.target.closest("[data-roving]");
    if (list) settle(list, event.target);
  });
}

function settle(list, chosen = null) {
  const stops = [...list.querySelectorAll("a")];
  const one = chosen ?? stops.find((stop) => stop.tabIndex === 0) ?? stops[0];
  for (const stop of stops) stop.tabIndex = stop === one ? 0 : -1;
}

const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity };

function walk(event) {
  const list = event.target.closest?.("[data-roving]");
  const step = STEPS[event.key];
  if (!list || step === undefined) return;
  const stops = [...list.querySelectorAll("a")];
  const place = stops.indexOf(event.target) + step;
  stops[Math.min(stops.length - 1, Math.max(0, place))].focus();
  event.preventDefault();
}
