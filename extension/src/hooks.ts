/** React hooks for model signals and the clock. */
import type { ISignal } from '@lumino/signaling';
import * as React from 'react';
import { Refresher } from './refreshing';

interface IChanging {
  readonly changed: ISignal<unknown, unknown>;
}

/** Render again after each change of a model. */
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

/** Return the current time in milliseconds, updated every `periodMs`. */
export function useNow(periodMs = 5000): number {
  const [now, setNow] = React.useState(() => Date.now());
  React.useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), periodMs);
    return () => clearInterval(timer);
  }, [periodMs]);
  return Math.max(now, Date.now() - periodMs);
}

/** Load an answer again when `key` changes. The last answer stays until the next arrives. */
export function useAnswer<T>(
  key: string,
  ask: () => Promise<T>
): { value: T | null; error: string } {
  const [answer, setAnswer] = React.useState<{ value: T | null; error: string }>({
    value: null,
    error: ''
  });
  const asked = React.useRef(ask);
  asked.current = ask;
  React.useEffect(() => {
    let wanted = true;
    asked.current().then(
      value => wanted && setAnswer({ value, error: '' }),
      (error: Error) => wanted && setAnswer(old => ({ ...old, error: error.message }))
    );
    return () => {
      wanted = false;
    };
  }, [key]);
  return answer;
}

/**
 * Load an answer when `subject` changes, and again after each change of `stand` with a pause of at
 * least `leastMs` between two loads. The last answer stays until the next arrives.
 */
export function useLiveAnswer<T>(
  subject: string,
  stand: string,
  leastMs: number,
  ask: () => Promise<T>
): { value: T | null; error: string } {
  const [answer, setAnswer] = React.useState<{ value: T | null; error: string }>({
    value: null,
    error: ''
  });
  const now = React.useRef({ ask, stand, loaded: '' });
  now.current = { ...now.current, ask, stand };
  const refresher = React.useRef<Refresher | null>(null);
  React.useEffect(() => {
    let wanted = true;
    const one = (refresher.current = new Refresher(() => {
      now.current.loaded = now.current.stand;
      return now.current.ask().then(
        value => void (wanted && setAnswer({ value, error: '' })),
        (error: Error) => void (wanted && setAnswer(old => ({ ...old, error: error.message })))
      );
    }, leastMs));
    one.want();
    return () => {
      wanted = false;
      one.dispose();
    };
  }, [subject, leastMs]);
  React.useEffect(() => {
    if (stand !== now.current.loaded) {
      refresher.current?.want();
    }
  }, [stand]);
  return answer;
}

/** Return a ref of a fold, which opens when a condition becomes true and may be closed again. */
export function useOpenedWhen(condition: boolean): React.RefObject<HTMLDetailsElement> {
  const fold = React.useRef<HTMLDetailsElement>(null);
  React.useEffect(() => {
    if (condition && fold.current) {
      fold.current.open = true;
    }
  }, [condition]);
  return fold;
}
