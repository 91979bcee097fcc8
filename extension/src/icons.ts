/**
 * The icon of the training pool: a chip with an arrow going up from it.
 */
import { LabIcon } from '@jupyterlab/ui-components';

export const trainIcon = new LabIcon({
  name: 'benchpool:train',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 16 16">
  <g class="jp-icon3" fill="none" stroke="#616161" stroke-width="1.4" stroke-linecap="round" stroke-linejoin="round">
    <path d="M5.2 6.5H3.5v7h9v-7h-1.7"/>
    <path d="M8 10.2V1.9M5.4 4.4 8 1.8l2.6 2.6"/>
    <path d="M1.4 8.6h2M1.4 11.4h2M12.6 8.6h2M12.6 11.4h2"/>
  </g>
</svg>`
});
