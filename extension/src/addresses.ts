/**
 * Addresses that become links, and those of the pool's own pages.
 */
import type { IStatus } from './tokens';

/** Only web addresses and paths become links, never a script. */
export function isWebAddress(url: string): boolean {
  return /^(https?:\/\/|\/(?!\/))/.test(url);
}

/** Where people choose what they are told, and where; null before the pool has answered. */
export function notificationsPage(status: IStatus | null): string | null {
  const url = status?.url ?? '';
  return isWebAddress(url) ? `${url.replace(/\/+$/, '')}/notifications` : null;
}
