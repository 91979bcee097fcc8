/** Button that copies the address of a job or of a part of it, for use in a chat. */
import { Clipboard } from '@jupyterlab/apputils';
import * as React from 'react';
import { isWebAddress } from './addresses';

const SHOWN_MS = 2500;

export function CopyLink(props: { url: string; what: string }): React.JSX.Element | null {
  const [copied, setCopied] = React.useState(false);
  React.useEffect(() => {
    const timer = copied ? setTimeout(() => setCopied(false), SHOWN_MS) : undefined;
    return () => clearTimeout(timer);
  }, [copied]);
  return isWebAddress(props.url) ? (
    <>
      <button
        type="button"
        className="bp-Link"
        data-testid="benchpool-copy-link"
        aria-label={`Copy link to ${props.what}`}
        onClick={() => {
          Clipboard.copyToSystem(new URL(props.url, window.location.href).href);
          setCopied(true);
        }}
      >
        copy link
      </button>
      <span role="status">{copied ? ' copied' : ''}</span>
    </>
  ) : null;
}
