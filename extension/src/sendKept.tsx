/** Values that a job returns: two rows of the send dialog. */
import * as React from 'react';
import { Row, TextRow } from './sendFields';
import type { Sending } from './sending';

export function KeptRows({ sending }: { sending: Sending }): React.JSX.Element | null {
  const { draft, preparation } = sending;
  if (draft.kind === 'script') {
    return null;
  }
  const left = preparation?.left ?? [];
  return (
    <>
      <TextRow
        sending={sending}
        field="keep"
        wire="keep"
        label="Return values"
        placeholder={left.length > 0 ? left.join(' ') : 'names; for example model losses'}
        note='values to read as job["model"]; default: the names that the cells define, up to 256 MiB'
      />
      <Row label="">
        <label className="bp-Check">
          <input
            data-testid="benchpool-pickle"
            type="checkbox"
            checked={draft.pickle}
            onChange={event => sending.update({ pickle: event.target.checked })}
          />
          <span>
            pickle values without a safe format, sent or returned; loading a pickle runs code
          </span>
        </label>
      </Row>
    </>
  );
}
