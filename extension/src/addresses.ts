/** Link checks and addresses of the pool's pages. */
import type { IStatus } from './tokens';

/** Return whether an address is a web address or path. Script addresses never become links. */
export function isWebAddress(url: string): boolean {
  return /^(https?:\/\/|\/(?!\/))/.test(url);
}

/** Return the address of the notification settings page, or null before the pool has answered. */
export function notificationsPage(status: IStatus | null): string | null {
  return pageOf(status, 'notifications');
}

/** Return the address of the page of schedules, or null before the pool has answered. */
export function schedulesPage(status: IStatus | null): string | null {
  return pageOf(status, 'schedules');
}

function pageOf(status: IStatus | null, name: string): string | null {
  const url = status?.url ?? '';
  return isWebAddress(url) ? `${url.replace(/\/+$/, '')}/${name}` : null;
}
