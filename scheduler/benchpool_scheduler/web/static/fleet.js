// What page.js does, and the charts.
import "./page.js";
import { drawCharts } from "./chart.js";

drawCharts();
