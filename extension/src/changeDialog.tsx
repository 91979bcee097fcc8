/**
 * The dialog “Change”: another priority and other workers for a job that has not ended.
 */
import { Dialog } from '@jupyterlab/apputils';
import { ReactWidget } from '@jupyterlab/ui-components';
import { MessageLoop } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';
import * as React from 'react';
import { Answers, begin, faults, IWorkersRule, workersRule } from './changing';
import { BOUNDS } from './bounds';
import { differing } from './filling';
import { Row } from './sendFields';
import { Fault } from './sendMore';
import type { IChangeRequest, IJob } from './tokens';

/** Show the dialog; resolves with what is to change, or null for nothing. */
export async function showChangeDialog(
  job: IJob,
  workersFixed: boolean
): Promise<IChangeRequest | null> {
  const body = new ChangeBody(begin(job), workersRule(job, workersFixed));
  MessageLoop.sendMessage(body, Widget.Msg.UpdateRequest);
  await body.renderPromise; // a dialog looks once where Tab goes after its last button
  const title = `Change “${job.name}”`;
  const dialog = new Dialog<Answers>({
    title,
    body,
    buttons: [Dialog.cancelButton(), Dialog.okButton({ label: 'Change' })],
    focusNodeSelector: '#benchpool-change-priority'
  });
  dialog.node.setAttribute('aria-label', title);
  const { value } = await dialog.launch();
  return value && differing(begin(job), value);
}

class ChangeBody extends ReactWidget implements Dialog.IBodyWidget<Answers> {
  constructor(
    private _answers: Answers,
    private readonly _rule: IWorkersRule
  ) {
    super();
    this.addClass('bp-Change');
  }

  getValue(): Answers {
    return this._answers;
  }

  protected override render(): React.JSX.Element {
    return (
      <ChangeFields
        first={this._answers}
        rule={this._rule}
        onChange={answers => (this._answers = answers)}
      />
    );
  }
}

function ChangeFields(props: {
  first: Answers;
  rule: IWorkersRule;
  onChange: (answers: Answers) => void;
}): React.JSX.Element {
  const { rule } = props;
  const [answers, setAnswers] = React.useState(props.first);
  const fault = faults(answers);
  const answer = (part: Partial<Answers>) => {
    const all = { ...answers, ...part };
    setAnswers(all);
    props.onChange(all);
  };
  return (
    <>
      <NumberRow
        id="benchpool-change-priority"
        label="Priority"
        note="Its turn inside the project; higher first."
        bounds={BOUNDS.priority}
        value={answers.priority}
        fault={fault.priority}
        onChange={priority => answer({ priority })}
      />
      <NumberRow
        id="benchpool-change-workers"
        label="Workers"
        note={rule.note}
        disabled={rule.fixed}
        bounds={BOUNDS.workers}
        value={answers.workers}
        fault={fault.workers}
        onChange={workers => answer({ workers })}
      />
    </>
  );
}

/** A number out of bounds is invalid to the browser too: the dialog then cannot be accepted. */
function NumberRow(props: {
  id: string;
  label: string;
  note: string;
  disabled?: boolean;
  bounds: Readonly<{ least: number; most: number }>;
  value: number;
  fault: string | undefined;
  onChange: (value: number) => void;
}): React.JSX.Element {
  const { id, value, fault } = props;
  return (
    <Row label={props.label} htmlFor={id}>
      <input
        id={id}
        className="jp-mod-styled bp-Form-number"
        type="number"
        min={props.bounds.least}
        max={props.bounds.most}
        step={1}
        required
        disabled={props.disabled}
        aria-invalid={Boolean(fault)}
        aria-describedby={`${id}-note`}
        value={Number.isNaN(value) ? '' : value}
        onChange={event => props.onChange(event.target.valueAsNumber)}
        onFocus={event => event.target.select()}
      />
      <span id={`${id}-note`} className="bp-Form-note">
        {props.note}
      </span>
      <Fault text={fault} />
    </Row>
  );
}
