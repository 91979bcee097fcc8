/** Kernel values in the send dialog, each with the cost to recompute and to send it. */
import * as React from 'react';
import { isTicked, obstacleLine, ticked } from './offeredValues';
import { Row } from './sendFields';
import type { Sending } from './sending';

export function ValueRows({ sending }: { sending: Sending }): React.JSX.Element | null {
  const { draft, preparation } = sending;
  const offers = preparation?.offers ?? [];
  if (offers.length === 0 || draft.kind === 'script') {
    return null;
  }
  return (
    <Row label="Values">
      <div data-testid="benchpool-values-along">
        {offers.map(offer => (
          <label className="bp-Check" key={offer.names.join(' ')}>
            <input
              type="checkbox"
              checked={isTicked(draft, offer)}
              disabled={Boolean(offer.obstacle) && !isTicked(draft, offer)}
              onChange={event =>
                sending.update({ send: ticked(draft, offers, offer, event.target.checked) })
              }
            />
            <span>
              <code>{offer.names.join(', ')}</code> {offer.text}
              {offer.obstacle && <span className="bp-Form-note"> {obstacleLine(offer)}</span>}
            </span>
          </label>
        ))}
        <div className="bp-Form-note">
          Ticked values are sent as they are in the kernel now; their cells are not included.
        </div>
      </div>
    </Row>
  );
}
