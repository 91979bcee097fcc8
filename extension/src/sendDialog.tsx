/**
 * Dialog “Send to training”: shows code, size and start of the job, and sends on Enter.
 *
 * It is the only part of the front end that sends notebook code. Commands only open it.
 */
import { Clipboard } from '@jupyterlab/apputils';
import { ReactWidget } from '@jupyterlab/ui-components';
import { MessageLoop } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';
import * as React from 'react';
import { listCells, problemLine, worstFirst } from './draft';
import { useChanged } from './hooks';
import type { JobsModel } from './model';
import { ParametersRow } from './parametersRow';
import { Prose } from './prose';
import { ArgumentsRow, FindsRow, RunsRow, SavesRow, SizeRow, StartsRow } from './sendFields';
import { MoreFold } from './sendMore';
import { ValueRows } from './sendValues';
import type { Sending } from './sending';
import { isScheduled } from './scheduleDraft';
import { ScheduleFold } from './scheduleFold';
import { isShownAtField } from './sweepFaults';
import { SweepFold } from './sweepFold';
import type { IAccepted } from './tokens';
import type { AccessRequests } from './accessRequests';
import { AskForProject } from './accessRequestsBox';

/** Show the dialog and resolve with the job or schedule, or null if it was closed without sending. */
export function showSendDialog(
  sending: Sending,
  model: JobsModel,
  accessRequests: AccessRequests
): Promise<IAccepted | null> {
  return new Promise(resolve => {
    const dialog = new SendDialog(sending, model, accessRequests, accepted => {
      dialog.dispose();
      sending.dispose();
      resolve(accepted);
    });
    Widget.attach(dialog, document.body);
    MessageLoop.sendMessage(dialog, Widget.Msg.UpdateRequest);
    void sending.prepare();
  });
}

class SendDialog extends ReactWidget {
  constructor(
    private readonly _sending: Sending,
    private readonly _model: JobsModel,
    private readonly _accessRequests: AccessRequests,
    private readonly _done: (accepted: IAccepted | null) => void
  ) {
    super();
    this.addClass('bp-SendDialog');
  }

  protected override render(): React.JSX.Element {
    const { _sending: sending, _model: model, _accessRequests: accessRequests } = this;
    return (
      <SendForm
        sending={sending}
        model={model}
        accessRequests={accessRequests}
        onDone={this._done}
      />
    );
  }
}

interface IFormProps {
  sending: Sending;
  model: JobsModel;
  accessRequests: AccessRequests;
  onDone: (accepted: IAccepted | null) => void;
}

function SendForm({ sending, model, accessRequests, onDone }: IFormProps): React.JSX.Element {
  useChanged(sending);
  useChanged(model);
  const frame = React.useRef<HTMLDialogElement>(null);
  React.useEffect(() => {
    frame.current?.showModal();
    frame.current?.querySelector<HTMLElement>('#benchpool-gpus')?.focus();
  }, []);

  const close = (accepted: IAccepted | null) => {
    frame.current?.close();
    onDone(accepted);
  };
  const submit = async (event: React.SyntheticEvent) => {
    event.preventDefault();
    if (!sending.ready) {
      return;
    }
    const accepted = await sending.send();
    if (accepted) {
      close(accepted);
    }
  };
  const projects = sending.preparation?.quota?.projects ?? model.quota?.projects ?? [];
  return (
    <dialog
      ref={frame}
      className="bp-Dialog"
      data-testid="benchpool-send-dialog"
      data-lm-suppress-shortcuts="true"
      aria-labelledby="benchpool-send-title"
      onCancel={event => {
        event.preventDefault();
        close(null);
      }}
    >
      <form className="bp-Form" onSubmit={event => void submit(event)}>
        <Heading sending={sending} />
        <div className="bp-Form-body">
          <Warnings model={model} />
          <RunsRow sending={sending} />
          <ValueRows sending={sending} />
          {sending.draft.kind === 'script' && <ArgumentsRow sending={sending} />}
          <ParametersRow sending={sending} />
          <SizeRow sending={sending} projects={projects} />
          <StartsRow sending={sending} />
          <FindsRow sending={sending} />
          <SavesRow sending={sending} />
          <SweepFold sending={sending} />
          <ScheduleFold sending={sending} />
          <MoreFold sending={sending} status={model.status} jobs={model.mine} />
          <TwinFold command={sending.preparation?.command ?? ''} />
          <Problems sending={sending} accessRequests={accessRequests} />
        </div>
        <footer className="bp-Form-buttons">
          <button type="button" className="jp-mod-styled jp-mod-reject" onClick={() => close(null)}>
            Cancel
          </button>
          <button
            type="submit"
            className="jp-mod-styled jp-mod-accept"
            data-testid="benchpool-send"
            disabled={!sending.ready}
          >
            {sending.sending
              ? 'Sending…'
              : isScheduled(sending.draft.schedule)
                ? 'Create schedule'
                : 'Send'}
          </button>
        </footer>
      </form>
    </dialog>
  );
}

function Heading({ sending }: { sending: Sending }): React.JSX.Element {
  const name = sending.subject.path.split('/').pop();
  return (
    <header className="bp-Form-heading">
      <h2 id="benchpool-send-title">Send to training</h2>
      <span className="bp-Form-note" title={sending.subject.path}>
        {name}
      </span>
    </header>
  );
}

function Warnings({ model }: { model: JobsModel }): React.JSX.Element | null {
  const { connection, status } = model;
  return (
    <>
      {connection.state === 'degraded' && <p className="bp-Note bp-mod-warn">{connection.text}</p>}
      {status?.simulated && (
        <p className="bp-Note" data-testid="benchpool-simulated">
          The GPUs of this pool are simulated: jobs run on the processor only.
        </p>
      )}
    </>
  );
}

/** CSS class by problem level. Infos are plain text. */
const NOTES = { error: 'bp-mod-error', warning: 'bp-mod-warn', info: 'bp-mod-info' };

/** Problems of the code or request with cell and line, errors first. */
function Problems(props: { sending: Sending; accessRequests: AccessRequests }): React.JSX.Element {
  const { sending, accessRequests } = props;
  const { preparation, error, subject, draft } = sending;
  const cells = listCells(subject, draft, preparation);
  const refusal = error?.message ?? preparation?.refusal?.message ?? null;
  const problems = worstFirst(preparation?.problems ?? []);
  return (
    <div className="bp-Problems" data-testid="benchpool-problems">
      {refusal && !isShownAtField(sending) && (
        <p className="bp-Note bp-mod-error" role="alert">
          {refusal}
        </p>
      )}
      {(error ?? preparation?.refusal)?.code === 'not-a-member' && draft.project && (
        <AskForProject
          key={draft.project}
          accessRequests={accessRequests}
          project={draft.project}
        />
      )}
      {problems.map((problem, i) => (
        <p
          key={i}
          className={`bp-Note ${NOTES[problem.level]}`}
          role={problem.level === 'error' ? 'alert' : undefined}
        >
          <Prose text={problemLine(problem, cells)} />
        </p>
      ))}
    </div>
  );
}

/** Equivalent terminal command or cell magic, for copying. */
function TwinFold({ command }: { command: string }): React.JSX.Element {
  const [copied, setCopied] = React.useState(false);
  const copy = () => {
    Clipboard.copyToSystem(command);
    setCopied(true);
    setTimeout(() => setCopied(false), 2000);
  };
  return (
    <details className="bp-Fold">
      <summary>
        {command.startsWith('%%') ? 'In a cell' : 'In a terminal'}{' '}
        <code className="bp-Fold-hint bp-Twin-short">{command}</code>
      </summary>
      <div className="bp-Twin">
        <code data-testid="benchpool-command">{command}</code>
        <button type="button" className="jp-mod-styled" onClick={copy}>
          {copied ? 'Copied' : 'Copy'}
        </button>
      </div>
    </details>
  );
}
