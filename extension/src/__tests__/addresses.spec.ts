import { notificationsPage } from '../addresses';
import type { IStatus } from '../tokens';

const at = (url: string) => ({ url }) as IStatus;

describe('the address of the notifications page', () => {
  it('is below the address of the pool', () => {
    expect(notificationsPage(at('https://gpus.example.org/services/benchpool'))).toBe(
      'https://gpus.example.org/services/benchpool/notifications'
    );
    expect(notificationsPage(at('/services/benchpool/'))).toBe('/services/benchpool/notifications');
  });

  it('is null before the pool has answered and for script addresses', () => {
    expect(notificationsPage(null)).toBeNull();
    expect(notificationsPage(at(''))).toBeNull();
    expect(notificationsPage(at('javascript:alert(1)'))).toBeNull();
  });
});
