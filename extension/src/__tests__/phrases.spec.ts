import * as examples from '../../../tests/phrases.json';
import { readSeconds, writtenSeconds } from '../durations';
import * as phrases from '../phrases';

/**
 * Functions under test by group of examples: arguments first, the text last. Python passes the same
 * examples.
 */
const TEXTS = {
  counts: phrases.count,
  gpus: phrases.gpusOfJob,
  durations: phrases.duration,
  exact_times: phrases.exactly,
  times_read: readSeconds,
  times_written: writtenSeconds,
  percents: phrases.percent,
  dones: phrases.done,
  pauses: phrases.pauseLeft,
  log_ends: phrases.logEnd,
  lefts: phrases.left,
  ages: phrases.ago,
  starts: phrases.startIn,
  attempt_ends: phrases.attemptEnd
} as unknown as Record<string, (...given: unknown[]) => string | null>;

const GROUPS = examples as unknown as Record<string, unknown[][]>;

describe.each(Object.keys(TEXTS))('%s', group => {
  it.each(GROUPS[group]!.map(row => [row.slice(0, -1), row[row.length - 1]] as const))(
    '%j returns %j',
    (given, words) => {
      expect(TEXTS[group]!(...given)).toBe(words);
    }
  );
});

describe('phrases', () => {
  it('exist for each state and each end', () => {
    expect(phrases.STATES).toEqual(examples.states);
    expect(phrases.ENDS).toEqual(examples.ends);
  });

  it('are tested by each group of examples', () => {
    // Only the pages show GPU states.
    const known = ['about', 'states', 'ends', 'gpu_states', ...Object.keys(TEXTS)];
    expect(
      Object.keys(examples).filter(group => group !== 'default' && !known.includes(group))
    ).toEqual([]);
  });
});
