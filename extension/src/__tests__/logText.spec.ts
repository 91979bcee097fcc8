import { LogText, MAX_LINES } from '../logText';

function shown(...pieces: string[]): string {
  const log = new LogText();
  pieces.forEach(piece => log.push(piece));
  return log.toString();
}

describe('a log', () => {
  it('shows the latest state of a progress bar', () => {
    expect(shown('10 %\r20 %\r', '30 %\ndone\n')).toBe('30 %\ndone\n');
    expect(shown('10 %\r')).toBe('10 %');
  });

  it('joins a line end that is split between chunks', () => {
    expect(shown('a\r', '\nb')).toBe('a\nb');
  });

  it('drops control sequences, including split ones', () => {
    expect(shown('\u001b[31mred\u001b[0m \u001b[', '1mbold\u001b]0;title\u0007!')).toBe(
      'red bold!'
    );
  });

  it('shows the number of bytes that the service skipped', () => {
    const log = new LogText();
    log.skip(1234);
    expect(log.toString()).toContain('1234 bytes');
  });

  it('keeps the end and counts the dropped lines', () => {
    const log = new LogText();
    for (let i = 0; i < MAX_LINES + 1000; i += 1) {
      log.push(`line ${i}\n`);
    }
    const lines = log.toString().trimEnd().split('\n');
    expect(lines.length).toBeLessThanOrEqual(MAX_LINES + 200);
    expect(lines.length + log.dropped).toBe(MAX_LINES + 1000);
    expect(lines.pop()).toBe(`line ${MAX_LINES + 999}`);
  });

  it('reuses finished blocks', () => {
    const log = new LogText();
    log.push('x\n'.repeat(250));
    const [first] = log.blocks();
    log.push('y\n');
    expect(log.blocks()[0]).toBe(first);
  });
});
