/** Names of values that a job returns, as typed in the dialog. */
import type { IDraft } from './draft';
import type { ISendRequest } from './tokens';

/** Pattern of a Python name. The server checks the details. */
const NAME = /^[\p{L}_][\p{L}\p{N}_]*$/u;

function namesOf(typed: string): string[] {
  return [...new Set(typed.split(/[\s,]+/).filter(name => name !== ''))];
}

export function faultOfKept(typed: string): string | null {
  const wrong = namesOf(typed).find(name => !NAME.test(name));
  return wrong === undefined ? null : `Return values: “${wrong.slice(0, 20)}” is not a valid name.`;
}

/** Return the request fields. A script has no named values. */
export function keptOf(
  draft: Pick<IDraft, 'kind' | 'keep' | 'pickle'>
): Pick<ISendRequest, 'keep' | 'pickle'> {
  const names = namesOf(draft.keep);
  const asked = draft.kind === 'script' ? {} : { keep: names.length > 0 ? names : null };
  return draft.pickle && draft.kind !== 'script' ? { ...asked, pickle: true } : asked;
}
