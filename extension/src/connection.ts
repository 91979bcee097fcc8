/** Transport to the notebook server: requests below the prefix of the server extension. */
import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import type { Transport } from './api';

const PREFIX = 'benchpool';

/** Create the transport of a page from its server settings. */
export function connect(settings: ServerConnection.ISettings): Transport {
  const base = URLExt.join(settings.baseUrl, PREFIX);
  // With `no-store` JupyterLab adds a timestamp to the address, which a strict API rejects.
  return (path, init = {}) =>
    ServerConnection.makeRequest(`${base}/${path}`, { cache: 'no-cache', ...init }, settings);
}
