/**
 * The one door to the notebook server: requests below the server extension's prefix.
 */
import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import type { Transport } from './api';

const PREFIX = 'benchpool';

/** Make the transport of a page for its server settings. */
export function connect(settings: ServerConnection.ISettings): Transport {
  const base = URLExt.join(settings.baseUrl, PREFIX);
  // With `no-store` JupyterLab adds a time to the address, which a closed interface refuses.
  return (path, init = {}) =>
    ServerConnection.makeRequest(`${base}/${path}`, { cache: 'no-cache', ...init }, settings);
}
