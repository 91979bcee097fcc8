/** Code of a job, folded below its row: differences to the current file, then the sent code. */
import * as React from 'react';
import type { Api } from './api';
import { useAnswer } from './hooks';
import type { IJob, ISent } from './tokens';

interface ISentProps {
  job: IJob;
  api: Api;
}

export function SentFold(props: ISentProps): React.JSX.Element {
  const [isOpen, setOpen] = React.useState(false);
  return (
    <details
      className="bp-Fold bp-Sent"
      data-testid="benchpool-sent-code"
      onToggle={event => setOpen(event.currentTarget.open)}
    >
      <summary>Sent code</summary>
      {isOpen && <SentCode {...props} />}
    </details>
  );
}

function SentCode({ job, api }: ISentProps): React.JSX.Element {
  const { value: sent, error } = useAnswer<ISent>(job.id, () => api.sent(job.id));
  if (error || !sent) {
    return <p className="bp-Detail-quiet">{error || 'Loading…'}</p>;
  }
  return (
    <>
      <Difference sent={sent} />
      {sent.cells.map(cell => (
        <React.Fragment key={cell.id}>
          <h5 className="bp-Sent-title">cell {cell.number}</h5>
          <pre className="bp-Sent-text">{cell.source}</pre>
        </React.Fragment>
      ))}
      {sent.text !== null && <pre className="bp-Sent-text">{sent.text}</pre>}
      {sent.cut && <p className="bp-Detail-quiet">Only the first MiB of the script is shown.</p>}
      {sent.command.length > 0 && <pre className="bp-Sent-text">{sent.command.join(' ')}</pre>}
    </>
  );
}

/** Differences between the sent code and the saved file. */
function Difference({ sent }: { sent: ISent }): React.JSX.Element | null {
  if (sent.difference === null) {
    return null;
  }
  const name = sent.origin?.split('/').pop() ?? 'the file';
  if (sent.difference === '') {
    return <p className="bp-Detail-quiet">{name} as saved has the same code.</p>;
  }
  return (
    <>
      <h5 className="bp-Sent-title">Changes in {name} as saved now</h5>
      <DifferenceLines lines={sent.difference.split('\n')} />
    </>
  );
}

/** Lines of a diff, styled by kind. */
export function DifferenceLines({ lines }: { lines: readonly string[] }): React.JSX.Element {
  return (
    <pre className="bp-Sent-text" data-testid="benchpool-difference">
      {lines.map((line, i) => (
        <span key={i} className={kindOf(line)}>
          {line}
          {'\n'}
        </span>
      ))}
    </pre>
  );
}

function kindOf(line: string): string {
  const kinds: Readonly<Record<string, string>> = {
    '+': 'bp-mod-new',
    '-': 'bp-mod-gone',
    '@': 'bp-mod-place',
    '=': 'bp-mod-place'
  };
  return kinds[line[0] ?? ''] ?? '';
}
