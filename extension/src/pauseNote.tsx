/**
 * Stage of the newest pause: the claimant and the time left to save, what was saved, or the resume.
 */
import * as React from 'react';
import { pauseText } from './format';
import { useNow } from './hooks';
import type { IJob } from './tokens';

const SECOND_MS = 1000;
const CALM_MS = 10_000;

export function PauseNote({ pause }: { pause: IJob['pause'] }): React.JSX.Element | null {
  const now = useNow(pause?.until ? SECOND_MS : CALM_MS);
  const text = pauseText(pause, now);
  return text ? (
    <span className="bp-Pause" data-stage={pause?.stage} data-testid="benchpool-pause">
      {text}
    </span>
  ) : null;
}
