/** Retries after failures and the action for a hanging job, as answers of the send dialog. Pure. */
import { outOfBounds } from './bounds';
import type { EndCause, IfHanging } from './generated/page';
import type { ISendRequest } from './tokens';

/** Typed answers. Empty means the site default. */
export interface IRetryDraft {
  /** Maximum number of retries. */
  retries: string;
  /** Causes, separated by blanks or commas. */
  retryOn: string;
  ifHanging: '' | IfHanging;
}

/** Choices for a hanging job, with their labels. */
export const IF_HANGING: readonly { value: IRetryDraft['ifHanging']; words: string }[] = [
  { value: '', words: 'site default' },
  { value: 'tell', words: 'notify me; the job keeps running' },
  { value: 'requeue', words: 'stop and retry' },
  { value: 'nothing', words: 'do not check' }
];

/** Return the remembered answers. Invalid answers are ignored. */
export function retriesIn(known: Record<string, unknown>): IRetryDraft {
  const text = (value: unknown): string => (typeof value === 'string' ? value : '');
  const chosen = IF_HANGING.find(({ value }) => value === known.ifHanging);
  return {
    retries: text(known.retries),
    retryOn: text(known.retryOn),
    ifHanging: chosen?.value ?? ''
  };
}

/** Return the answers to remember. */
export function keptRetries(draft: IRetryDraft): Partial<IRetryDraft> {
  const { retries, retryOn, ifHanging } = draft;
  return {
    ...(retries ? { retries } : {}),
    ...(retryOn ? { retryOn } : {}),
    ...(ifHanging ? { ifHanging } : {})
  };
}

/** Return the fault of the number of retries as a sentence, or null. */
export function faultOfRetries(retries: string): string | null {
  const fault = retries.trim() === '' ? null : outOfBounds('retries', Number(retries));
  return fault === null ? null : `${fault}, or empty for the site default.`;
}

/** Return the request fields, without empty answers. */
export function retriesOf(
  draft: IRetryDraft
): Pick<ISendRequest, 'retries' | 'retry_on' | 'if_hanging'> {
  const causes = draft.retryOn.split(/[\s,]+/).filter(cause => cause !== '');
  return {
    ...(draft.ifHanging === '' ? {} : { if_hanging: draft.ifHanging }),
    ...(draft.retries.trim() === '' ? {} : { retries: Number(draft.retries) }),
    // The service checks the causes.
    ...(causes.length === 0 ? {} : { retry_on: [...new Set(causes)] as EndCause[] })
  };
}
