/**
 * The fold of the send dialog: name, workers, limits, and what the job will find.
 */
import * as React from 'react';
import { MAX_WORKERS } from './draft';
import { count, size } from './format';
import { faultOf, Row, TextRow } from './sendFields';
import type { Sending } from './sending';
import type { IPreparation } from './tokens';

export function MoreFold({ sending }: { sending: Sending }): React.JSX.Element {
  const { preparation, draft } = sending;
  const fault = faultOf(sending, 'workers');
  return (
    <details className="bp-Fold bp-More">
      <summary>
        More <span className="bp-Fold-hint">{moreHint(preparation)}</span>
      </summary>
      <TextRow
        sending={sending}
        field="name"
        wire="name"
        label="Name"
        placeholder={preparation?.name ?? ''}
      />
      <Row label="Workers" htmlFor="benchpool-workers">
        <input
          id="benchpool-workers"
          data-testid="benchpool-workers"
          className="jp-mod-styled bp-Form-number"
          type="number"
          min={1}
          max={MAX_WORKERS}
          value={Number.isNaN(draft.workers) ? '' : draft.workers}
          aria-invalid={Boolean(fault)}
          onChange={event => sending.update({ workers: event.target.valueAsNumber })}
        />
        <span className="bp-Form-note">processes that train together, each with these GPUs</span>
        {fault && (
          <div className="bp-Fault" role="alert">
            {fault}
          </div>
        )}
      </Row>
      <TextRow
        sending={sending}
        field="timeLimit"
        wire="time_limit_s"
        label="Time limit"
        placeholder="none; for example 90 min, 2 h"
      />
      <TextRow
        sending={sending}
        field="priority"
        wire="priority"
        label="Priority"
        placeholder="50; higher goes first among your project's jobs"
      />
      <Facts preparation={preparation} />
    </details>
  );
}

function moreHint(preparation: IPreparation | null): string {
  const files = preparation?.files;
  return files
    ? `name, time limit, ${count(files.count, 'file')} (${size(files.bytes)}), environment, results`
    : 'name, time limit, environment, results';
}

function Facts({ preparation }: { preparation: IPreparation | null }): React.JSX.Element | null {
  if (!preparation) {
    return null;
  }
  const facts: [string, string | null][] = [
    ['Environment', preparation.interpreter],
    ['Runs in', preparation.working_dir === '.' ? './' : preparation.working_dir],
    ['Results to', preparation.output_dir]
  ];
  const leftOut = preparation.files?.left_out ?? [];
  return (
    <>
      {facts.map(
        ([label, value]) =>
          value && (
            <Row key={label} label={label}>
              <code className="bp-Form-code">{value}</code>
            </Row>
          )
      )}
      {leftOut.length > 0 && (
        <Row label="Left out">
          <ul className="bp-LeftOut">
            {leftOut.map(file => (
              <li key={file.path}>
                <code>{file.path}</code> {file.why}
              </li>
            ))}
          </ul>
        </Row>
      )}
    </>
  );
}
