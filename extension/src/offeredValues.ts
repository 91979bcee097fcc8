/** Kernel values that can be sent with a job, and their ticks. */
import type { IDraft } from './draft';
import type { IPreparation, ISendRequest } from './tokens';

export type IOffer = NonNullable<IPreparation['offers']>[number];

export function sentOf(draft: Pick<IDraft, 'kind' | 'send'>): Pick<ISendRequest, 'send'> {
  return draft.kind === 'script' || draft.send === null ? {} : { send: [...draft.send] };
}

/**
 * Return the values to send as shown in the dialog: the ticked names, with the default choice as
 * names.
 */
export function sentAsShown(
  draft: Pick<IDraft, 'kind' | 'send'>,
  shown: Pick<IPreparation, 'offers'> | null
): Pick<ISendRequest, 'send'> {
  const chosen = (shown?.offers ?? []).filter(offer => offer.chosen).flatMap(one => one.names);
  return draft.send === null && chosen.length > 0 ? { send: chosen } : sentOf(draft);
}

export function isTicked(draft: Pick<IDraft, 'send'>, offer: IOffer): boolean {
  return draft.send === null ? offer.chosen : offer.names.every(name => draft.send!.includes(name));
}

/** Return the ticked names after one offer was ticked or unticked. */
export function ticked(
  draft: Pick<IDraft, 'send'>,
  offers: readonly IOffer[],
  changed: IOffer,
  on: boolean
): string[] {
  return offers
    .filter(offer => (offer === changed ? on : isTicked(draft, offer)))
    .flatMap(offer => offer.names);
}

/** Return why an offer cannot be sent. */
export function obstacleLine(offer: IOffer): string {
  return `Cannot be sent: ${offer.obstacle}.`;
}
