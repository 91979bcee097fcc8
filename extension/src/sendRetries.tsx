/** Retries after failures and the action for a hanging job: rows of the send dialog. */
import * as React from 'react';
import { IF_HANGING, IRetryDraft } from './retries';
import { faultOf, Row, TextRow } from './sendFields';
import type { Sending } from './sending';

export function RetryRows({ sending }: { sending: Sending }): React.JSX.Element {
  return (
    <>
      <TextRow
        sending={sending}
        field="retries"
        wire="retries"
        label="Retries"
        placeholder="site default; for example 2"
        note="maximum retries after failures of each cause; a repeated traceback is not retried"
      />
      <TextRow
        sending={sending}
        field="retryOn"
        wire="retry_on"
        label="Retry on"
        placeholder="any failure of the program; for example gpu-error exit-code"
      />
      <HangingRow sending={sending} />
    </>
  );
}

function HangingRow({ sending }: { sending: Sending }): React.JSX.Element {
  const fault = faultOf(sending, 'ifHanging', 'if_hanging');
  return (
    <Row label="If it hangs" htmlFor="benchpool-if-hanging">
      <select
        id="benchpool-if-hanging"
        data-testid="benchpool-if-hanging"
        className="jp-mod-styled"
        value={sending.draft.ifHanging}
        aria-invalid={Boolean(fault)}
        onChange={event =>
          sending.update({ ifHanging: event.target.value as IRetryDraft['ifHanging'] })
        }
      >
        {IF_HANGING.map(({ value, words }) => (
          <option key={value} value={value}>
            {words}
          </option>
        ))}
      </select>
      <div className="bp-Form-note">
        a job hangs if it reports and writes nothing and uses neither processors nor GPUs for 30 min
        or the time that the site sets
      </div>
      {fault && (
        <div className="bp-Fault" role="alert">
          {fault}
        </div>
      )}
    </Row>
  );
}
