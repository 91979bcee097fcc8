/**
 * Sentences of the service as React text: backticks become code, and times are in the reader's time
 * zone.
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
