/**
 * Sentences of the service as React text: what stands between backticks is shown as code.
 */
import * as React from 'react';

export function Prose({ text }: { text: string }): React.JSX.Element {
  return (
    <>
      {text
        .split(/`([^`]+)`/)
        .map((part, i) => (i % 2 ? <code key={i}>{part}</code> : <span key={i}>{part}</span>))}
    </>
  );
}
