/**
 * Icons: a paper plane for sending to the pool, and a page with a plane for the example. JupyterLab
 * themes fill elements with their class, so shapes are filled and have no strokes.
 */
import { LabIcon } from '@jupyterlab/ui-components';

export const trainIcon = new LabIcon({
  name: 'benchpool:train',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 16 16">
  <g class="jp-icon3" fill="#616161">
    <path d="M14.9 1.1.9 6.5l4.6 2.6 6.3-5.2-4.9 6.5 2.6 4.6z"/>
  </g>
</svg>`
});

export const exampleIcon = new LabIcon({
  name: 'benchpool:example',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 16 16">
  <g class="jp-icon3" fill="#616161">
    <path fill-rule="evenodd" d="M2 1h12v14H2zM3.2 2.2v11.6h1.3V2.2zM12.9 4 5.6 6.9 8 8.2l3.3-2.7-2.6 3.4 1.4 2.4z"/>
  </g>
</svg>`
});
