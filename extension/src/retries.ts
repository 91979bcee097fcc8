/**
 * After which failures a job is tried again, and what is done when it hangs, as the send dialog asks
 * for it. Pure.
 */
import { outOfBounds } from './bounds';
import type { EndCause, IfHanging } from './generated/page';
import type { ISendRequest } from './tokens';

/** The answers as they are typed; empty is what the site does. */
export interface IRetryDraft {
  /** How often it is tried again. */
  retries: string;
  /** Causes, parted by blanks or commas. */
  retryOn: string;
  ifHanging: '' | IfHanging;
}

/** What can be chosen for a job that hangs, in words. */
export const IF_HANGING: readonly { value: IRetryDraft['ifHanging']; words: string }[] = [
  { value: '', words: 'as the site does' },
  { value: 'tell', words: 'tell me; it runs on' },
  { value: 'requeue', words: 'stop it and try again' },
  { value: 'nothing', words: 'do not look at it' }
];

/** The answers that were kept; what cannot be used is left out. */
export function retriesIn(known: Record<string, unknown>): IRetryDraft {
  const text = (value: unknown): string => (typeof value === 'string' ? value : '');
  const chosen = IF_HANGING.find(({ value }) => value === known.ifHanging);
  return {
    retries: text(known.retries),
    retryOn: text(known.retryOn),
    ifHanging: chosen?.value ?? ''
  };
}

/** The answers to keep. */
export function keptRetries(draft: IRetryDraft): Partial<IRetryDraft> {
  const { retries, retryOn, ifHanging } = draft;
  return {
    ...(retries ? { retries } : {}),
    ...(retryOn ? { retryOn } : {}),
    ...(ifHanging ? { ifHanging } : {})
  };
}

/** What is wrong with the number of retries, as a sentence; null where nothing is. */
export function faultOfRetries(retries: string): string | null {
  const fault = retries.trim() === '' ? null : outOfBounds('retries', Number(retries));
  return fault === null ? null : `${fault}, or empty for what the site does.`;
}

/** What is asked for; nothing of an answer that is empty. */
export function retriesOf(
  draft: IRetryDraft
): Pick<ISendRequest, 'retries' | 'retry_on' | 'if_hanging'> {
  const causes = draft.retryOn.split(/[\s,]+/).filter(cause => cause !== '');
  return {
    ...(draft.ifHanging === '' ? {} : { if_hanging: draft.ifHanging }),
    ...(draft.retries.trim() === '' ? {} : { retries: Number(draft.retries) }),
    // The service says which causes there are.
    ...(causes.length === 0 ? {} : { retry_on: [...new Set(causes)] as EndCause[] })
  };
}
