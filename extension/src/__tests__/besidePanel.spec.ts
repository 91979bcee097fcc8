import { shiftFor, standBeside } from '../besidePanel';

describe('notifications', () => {
  it('stand beside the panel on the right where there is room, and nowhere else', () => {
    expect(shiftFor({ left: 1100, right: 1408 }, 1440)).toBe(340);
    expect(shiftFor({ left: 130, right: 358 }, 390)).toBe(0);
    expect(shiftFor({ left: 32, right: 340 }, 1440)).toBe(0);
    expect(shiftFor(null, 1440)).toBe(0);
  });

  it('come back to their corner when the panel is hidden', () => {
    standBeside({ left: window.innerWidth - 300, right: window.innerWidth });
    expect(document.body.style.getPropertyValue('--bp-toasts-shift')).toBe('300px');
    expect(document.body.className).toBe('bp-mod-toastsBeside');
    standBeside(null);
    expect(document.body.style.getPropertyValue('--bp-toasts-shift')).toBe('0px');
    expect(document.body.className).toBe('');
  });
});
