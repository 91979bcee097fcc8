/**
 * Dialog of an idle bench: keep it, release its GPUs, or send the work to training. The effect of
 * each choice is beside its button. The dialog closes if another tab has answered.
 */
import { ReactWidget } from '@jupyterlab/ui-components';
import { MessageLoop } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';
import * as React from 'react';
import type { BenchModel } from './benchModel';
import {
  dialogTitle,
  isGoing,
  needsAnswer,
  whatComes,
  whatGivingDoes,
  whatHappened,
  whatKeepingDoes,
  whatSendingDoes
} from './benchWords';
import { useChanged, useNow } from './hooks';
import { exactly } from './phrases';
import type { IBenchNow } from './tokens';

/** Parts of JupyterLab that the dialog uses. */
export interface IBenchPlaces {
  /** Return the name of the current notebook, or null. */
  notebook: () => string | null;
  /** Open the send dialog for the cells of that notebook. */
  send: () => void;
  /** Address where the Hub starts and stops servers, or an empty string outside a Hub. */
  hub: string;
}

/** Show the dialog and resolve when it is closed. `alone`: it opened without a user action. */
export function showBenchDialog(
  model: BenchModel,
  places: IBenchPlaces,
  alone: boolean
): Promise<void> {
  return new Promise(resolve => {
    const dialog = new BenchDialog(model, places, alone, () => {
      dialog.dispose();
      resolve();
    });
    Widget.attach(dialog, document.body);
    MessageLoop.sendMessage(dialog, Widget.Msg.UpdateRequest);
  });
}

class BenchDialog extends ReactWidget {
  constructor(
    private readonly _model: BenchModel,
    private readonly _places: IBenchPlaces,
    private readonly _alone: boolean,
    private readonly _done: () => void
  ) {
    super();
  }

  protected override render(): React.JSX.Element {
    const { _model: model, _places: places, _alone: alone } = this;
    return <Frame model={model} places={places} alone={alone} onDone={this._done} />;
  }
}

interface IFrameProps {
  model: BenchModel;
  places: IBenchPlaces;
  alone: boolean;
  onDone: () => void;
}

function Frame({ model, places, alone, onDone }: IFrameProps): React.JSX.Element | null {
  useChanged(model);
  const [error, setError] = React.useState('');
  const [isAsking, setAsking] = React.useState(false);
  const frame = React.useRef<HTMLDialogElement>(null);
  const bench = model.now;
  const isOver = bench === null || (alone && !needsAnswer(bench) && error === '');
  React.useEffect(() => {
    frame.current?.showModal();
    // Focus the heading, so that a user who is typing does not press a button.
    frame.current?.querySelector<HTMLElement>('h2')?.focus();
  }, []);
  const close = React.useCallback(() => {
    frame.current?.close();
    onDone();
  }, [onDone]);
  React.useEffect(() => {
    if (isOver) {
      close();
    }
  }, [isOver, close]);
  const answer = async (ask: () => Promise<void>) => {
    setAsking(true);
    try {
      await ask();
      close();
    } catch (failed) {
      setError((failed as Error).message);
      setAsking(false);
    }
  };
  return (
    <dialog
      ref={frame}
      className="bp-Dialog bp-Bench"
      data-testid="benchpool-bench-dialog"
      data-lm-suppress-shortcuts="true"
      aria-labelledby="benchpool-bench-title"
      aria-describedby="benchpool-bench-text"
      onCancel={event => {
        event.preventDefault();
        close();
      }}
    >
      {bench && (
        <>
          <header className="bp-Form-heading">
            <h2 id="benchpool-bench-title" tabIndex={-1}>
              {dialogTitle(bench)}
            </h2>
          </header>
          <div className="bp-Form-body">
            <Body
              bench={bench}
              places={places}
              isAsking={isAsking}
              onKeep={() => void answer(() => model.keep())}
              onGive={() => void answer(() => model.release())}
              onSend={() => {
                close();
                places.send();
              }}
            />
            <p className="bp-Bench-error" role="alert" data-testid="benchpool-bench-error">
              {error}
            </p>
          </div>
          <footer className="bp-Form-buttons">
            <button type="button" className="jp-mod-styled jp-mod-reject" onClick={close}>
              {alone ? 'Not now' : 'Close'}
            </button>
          </footer>
        </>
      )}
    </dialog>
  );
}

interface IBodyProps {
  bench: IBenchNow;
  places: IBenchPlaces;
  isAsking: boolean;
  onKeep: () => void;
  onGive: () => void;
  onSend: () => void;
}

function Body(props: IBodyProps): React.JSX.Element {
  const { bench, places } = props;
  const now = useNow(1000);
  const idle = bench.idleness;
  if (bench.given_back || !idle) {
    return (
      <>
        <p id="benchpool-bench-text">
          {bench.given_back ? whatHappened(bench.given_back) : 'This server holds no GPU.'}
        </p>
        <HubLink hub={places.hub} />
      </>
    );
  }
  if (isGoing(bench)) {
    return <p id="benchpool-bench-text">The GPU is being released now.</p>;
  }
  const notebook = places.notebook();
  return (
    <>
      <p id="benchpool-bench-text">{whatComes(idle, now)}</p>
      <dl className="bp-Bench-choices">
        {needsAnswer(bench) && (
          <Choice
            id="keep"
            label={`Keep for ${exactly(idle.keep_s)}`}
            text={whatKeepingDoes(idle)}
            isOff={props.isAsking || idle.keeps_left <= 0}
            onChoose={props.onKeep}
          />
        )}
        <Choice
          id="give"
          label={idle.gpus.length === 1 ? 'Release the GPU' : 'Release the GPUs'}
          text={whatGivingDoes(bench)}
          isOff={props.isAsking}
          onChoose={props.onGive}
        />
        <Choice
          id="send"
          label="Send to training"
          text={whatSendingDoes(notebook)}
          isOff={props.isAsking || notebook === null}
          onChoose={props.onSend}
        />
      </dl>
      <HubLink hub={places.hub} />
    </>
  );
}

function Choice(props: {
  id: string;
  label: string;
  text: string;
  isOff: boolean;
  onChoose: () => void;
}): React.JSX.Element {
  const descriptionId = `benchpool-bench-${props.id}-text`;
  return (
    <>
      <dt>
        <button
          type="button"
          className="jp-mod-styled"
          data-testid={`benchpool-bench-${props.id}`}
          aria-describedby={descriptionId}
          disabled={props.isOff}
          onClick={props.onChoose}
        >
          {props.label}
        </button>
      </dt>
      <dd id={descriptionId}>{props.text}</dd>
    </>
  );
}

function HubLink({ hub }: { hub: string }): React.JSX.Element | null {
  return hub === '' ? null : (
    <p>
      <a className="bp-Link" href={hub} target="_blank" rel="noreferrer">
        Stop and start servers on the Hub’s page
      </a>
    </p>
  );
}
