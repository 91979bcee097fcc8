import { shiftFor, standBeside } from '../besidePanel';

describe('notifications', () => {
  it('move beside a panel on the right if the window is wide enough', () => {
    expect(shiftFor({ left: 1100, right: 1408 }, 1440)).toBe(340);
    expect(shiftFor({ left: 130, right: 358 }, 390)).toBe(0);
    expect(shiftFor({ left: 32, right: 340 }, 1440)).toBe(0);
    expect(shiftFor(null, 1440)).toBe(0);
  });

  it('return to their corner when the panel is hidden', () => {
    standBeside({ left: window.innerWidth - 300, right: window.innerWidth });
    expect(document.body.style.getPropertyValue('--bp-toasts-shift')).toBe('300px');
    expect(document.body.className).toBe('bp-mod-toastsBeside');
    standBeside(null);
    expect(document.body.style.getPropertyValue('--bp-toasts-shift')).toBe('0px');
    expect(document.body.className).toBe('');
  });
});
