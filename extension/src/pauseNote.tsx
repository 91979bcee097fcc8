/**
 * The newest pause of a job as a moment: who needs the room and how long is left to save, what was
 * saved, that the job is back.
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
