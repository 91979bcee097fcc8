/** Lines that resume a training after a pause, with the names of its code, for copying. */
import { Clipboard } from '@jupyterlab/apputils';
import * as React from 'react';

const SHOWN_MS = 2500;

export function ResumeLines({ lines }: { lines: string }): React.JSX.Element {
  const [copied, setCopied] = React.useState(false);
  React.useEffect(() => {
    const timer = copied ? setTimeout(() => setCopied(false), SHOWN_MS) : undefined;
    return () => clearTimeout(timer);
  }, [copied]);
  return (
    <div className="bp-Resume" data-testid="benchpool-resume-lines">
      <pre tabIndex={0} aria-label="Lines that resume the training">
        {lines}
      </pre>
      <button
        type="button"
        className="bp-Link"
        onClick={() => {
          Clipboard.copyToSystem(lines);
          setCopied(true);
        }}
      >
        Copy these lines
      </button>
      <span role="status">{copied ? ' copied' : ''}</span>
    </div>
  );
}
