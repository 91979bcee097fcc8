// Import page.js and the charts.
import "./page.js";
import { drawCharts } from "./chart.js";

drawCharts();
