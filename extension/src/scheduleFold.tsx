/** Schedule in the send dialog: times, time zone and the next five times. */
import * as React from 'react';
import { clockTime, isScheduled } from './scheduleDraft';
import { Row } from './sendFields';
import { Fault } from './sendMore';
import type { Sending } from './sending';
import { faultOfTimes } from './sweepFaults';

const FORMS = 'none; for example night at 2, weekday at 18:30 or 0 2 * * 1-5';

export function ScheduleFold({ sending }: { sending: Sending }): React.JSX.Element {
  const { schedule } = sending.draft;
  const times = sending.preparation?.schedule ?? null;
  const fault = faultOfTimes(sending);
  const change = (part: Partial<typeof schedule>): void =>
    sending.update({ schedule: { ...schedule, ...part } });
  return (
    <details className="bp-Fold" data-testid="benchpool-schedule">
      <summary>
        Repeat{' '}
        <span className="bp-Fold-hint">
          {isScheduled(schedule) ? `every ${schedule.every}` : 'send a job at set times'}
        </span>
      </summary>
      <Row label="Every" htmlFor="benchpool-every">
        <input
          id="benchpool-every"
          data-testid="benchpool-every"
          className="jp-mod-styled bp-Form-text"
          type="text"
          maxLength={200}
          value={schedule.every}
          placeholder={FORMS}
          aria-invalid={fault !== undefined}
          spellCheck={false}
          onChange={event => change({ every: event.target.value })}
        />
        <Fault text={fault} />
      </Row>
      <Row label="Time zone" htmlFor="benchpool-zone">
        <input
          id="benchpool-zone"
          data-testid="benchpool-zone"
          className="jp-mod-styled"
          type="text"
          maxLength={100}
          value={schedule.zone}
          placeholder="UTC"
          spellCheck={false}
          onChange={event => change({ zone: event.target.value })}
        />
      </Row>
      {isScheduled(schedule) && (
        <Row label="Next">
          <span role="status" data-testid="benchpool-next-times" data-stale={sending.preparing}>
            {times ? times.next.map(clockTime).join(', ') : 'not known yet'}
          </span>
          <div className="bp-Form-note">
            Each job runs the code and values that are sent now. A time is skipped while the
            previous job has not ended.
          </div>
        </Row>
      )}
    </details>
  );
}
