/**
 * React hooks that tie a view to a model's signal and to the clock.
 */
import type { ISignal } from '@lumino/signaling';
import * as React from 'react';

interface IChanging {
  readonly changed: ISignal<unknown, unknown>;
}

/** Render again whenever the model says that it has changed. */
export function useChanged(model: IChanging): void {
  const [, bump] = React.useReducer((n: number) => n + 1, 0);
  React.useEffect(() => {
    const onChanged = () => bump();
    model.changed.connect(onChanged);
    return () => {
      model.changed.disconnect(onChanged);
    };
  }, [model]);
}

/** The reader's clock in milliseconds, renewed every `periodMs`. */
export function useNow(periodMs = 5000): number {
  const [now, setNow] = React.useState(() => Date.now());
  React.useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), periodMs);
    return () => clearInterval(timer);
  }, [periodMs]);
  return Math.max(now, Date.now() - periodMs);
}
