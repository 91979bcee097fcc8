/**
 * Sentences of the service as React text: what stands between backticks is shown as code, and
 * instants in the reader's zone.
 */
import * as React from 'react';
import { inReadersZone } from './format';

export function Prose({ text }: { text: string }): React.JSX.Element {
  return (
    <>
      {text
        .split(/`([^`]+)`/)
        .map((part, i) =>
          i % 2 ? <code key={i}>{part}</code> : <span key={i}>{inReadersZone(part)}</span>
        )}
    </>
  );
}
