// Line charts of the tables in figures, drawn with uPlot. The table is the source: it is read after
// each page update, and without scripts only the table is shown.
import { SHOWN } from "./live.js";

const HEIGHT = 180;
const drawn = new WeakMap();

/** Draw each `figure[data-chart]`. Rows have `data-at` in seconds, cells `data-value`. */
export function drawCharts() {
  const all = () => document.querySelectorAll("figure[data-chart]").forEach(draw);
  document.addEventListener(SHOWN, all);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    document.querySelectorAll("figure[data-chart]").forEach(forget);
    all();
  });
  new ResizeObserver(() => document.querySelectorAll("figure[data-chart]").forEach(fit)).observe(document.body);
  all();
}

function draw(figure) {
  const data = read(figure);
  if (data[0].length < 2) return;
  const known = drawn.get(figure);
  if (known !== undefined) known.setData(data);
  else {
    const plot = figure.querySelector("[data-plot]");
    drawn.set(figure, new globalThis.uPlot(options(figure), data, plot));
    plot.onkeydown = (event) => readAloud(figure, event);
  }
}

/** Keys that move the cursor of a chart: functions of the current and the last index. */
const STEPS = {
  ArrowLeft: (at) => at - 1,
  ArrowRight: (at) => at + 1,
  PageUp: (at) => at - 24,
  PageDown: (at) => at + 24,
  Home: () => 0,
  End: (_, last) => last,
};

/** Move the cursor and write its values into the live region of the figure. */
function readAloud(figure, event) {
  const step = STEPS[event.key];
  const chart = drawn.get(figure);
  if (step === undefined || chart === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  const last = chart.data[0].length - 1;
  const from = chart.cursor.idx ?? (event.key === "ArrowRight" ? -1 : last + 1);
  const at = Math.max(0, Math.min(last, step(from, last)));
  const time = chart.data[0][at];
  const row = figure.querySelector(`tr[data-at="${time}"]`);
  const cells = [...row.querySelectorAll("td")];
  const values = names(figure).map((head, number) => `${head.textContent} ${cells[number].textContent}`);
  figure.querySelector("[data-read]").textContent = `${row.querySelector("th").textContent}: ${values.join(", ")}`;
  chart.setCursor({ left: chart.valToPos(time, "x"), top: 0 });
}

function forget(figure) {
  drawn.get(figure)?.destroy();
  drawn.delete(figure);
}

function fit(figure) {
  drawn.get(figure)?.setSize({ width: figure.clientWidth, height: HEIGHT });
}

/** @returns {(number | null)[][]} times, then the values of each series; a gap is null */
function read(figure) {
  const rows = [...figure.querySelectorAll("tr[data-at]")].sort((one, other) => one.dataset.at - other.dataset.at);
  const value = (cell) => (cell.dataset.value === "" ? null : Number(cell.dataset.value));
  const series = names(figure).map((_, number) => rows.map((row) => value(row.querySelectorAll("td")[number])));
  return [rows.map((row) => Number(row.dataset.at)), ...series];
}

const names = (figure) => [...figure.querySelectorAll("thead th[data-line]")];

function options(figure) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
  return {
    width: figure.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { drag: { x: false, y: false } },
    scales: { y: { range: (_, __, most) => [0, Math.max(1, most)] } },
    axes: [{ ...axis, values: (_, times) => times.map(when) }, { ...axis, size: 40 }],
    series: [{}, ...names(figure).map((head) => line(head, colour))],
  };
}

const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const hour = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

/**
 * @param {number} seconds midnight as a date, other times as a time of day, in the reader's zone
 */
function when(seconds) {
  const at = new Date(seconds * 1000);
  return (at.getHours() === 0 && at.getMinutes() === 0 ? day : hour).format(at);
}

function line(head, colour) {
  const { line: name, dash, fill } = head.dataset;
  return {
    label: head.textContent,
    stroke: colour(name),
    width: 2,
    dash: dash ? [6, 4] : undefined,
    fill: fill ? `color-mix(in srgb, ${colour(name)} 22%, transparent)` : undefined,
    points: { show: false },
  };
}
