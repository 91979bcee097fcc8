import { notificationsPage } from '../addresses';
import type { IStatus } from '../tokens';

const at = (url: string) => ({ url }) as IStatus;

describe('the page of notifications', () => {
  it('lies below the address that the pool tells', () => {
    expect(notificationsPage(at('https://gpus.example.org/services/benchpool'))).toBe(
      'https://gpus.example.org/services/benchpool/notifications'
    );
    expect(notificationsPage(at('/services/benchpool/'))).toBe('/services/benchpool/notifications');
  });

  it('is nowhere before the pool has answered, and never a script', () => {
    expect(notificationsPage(null)).toBeNull();
    expect(notificationsPage(at(''))).toBeNull();
    expect(notificationsPage(at('javascript:alert(1)'))).toBeNull();
  });
});
