/** Dialog of an action with fields, generated from the action table. */
import { Dialog } from '@jupyterlab/apputils';
import { ReactWidget } from '@jupyterlab/ui-components';
import { MessageLoop } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';
import * as React from 'react';
import type { FilledAction, IActionField, IFilledAction } from './generated/actions';
import type { Notes } from './changing';
import { PATTERN } from './durations';
import { asked, differing, Filled, idOf, isEmpty, optionsOf, present } from './filling';
import { Row } from './sendFields';
import type { IJob } from './tokens';
import { jobCommand, LATER } from './twins';

/** Notes on fields: reasons why fields cannot change, and remarks. */
export interface IAbout {
  staying: Notes;
  remarks: Notes;
}

const NOTHING: IAbout = { staying: {}, remarks: {} };

/** Show the dialog and resolve with the changed fields, or null. */
export async function showFormDialog(
  action: IFilledAction & { name: FilledAction },
  job: IJob,
  about: IAbout = NOTHING
): Promise<Partial<Filled> | null> {
  const body = new FormBody(action, job.id, present(action, job), about);
  MessageLoop.sendMessage(body, Widget.Msg.UpdateRequest);
  await body.renderPromise; // the dialog determines its tab order once
  const title = `${action.label} “${job.name}”`;
  const dialog = new Dialog<Filled>({
    title,
    body,
    buttons: [Dialog.cancelButton(), Dialog.okButton({ label: action.label })],
    focusNodeSelector: '.bp-Change input:not(:disabled)'
  });
  dialog.node.setAttribute('aria-label', title);
  const { value } = await dialog.launch();
  return value && differing(present(action, job), value);
}

class FormBody extends ReactWidget implements Dialog.IBodyWidget<Filled> {
  constructor(
    private readonly _action: IFilledAction,
    private readonly _id: string,
    private _filled: Filled,
    private readonly _about: IAbout
  ) {
    super();
    this.addClass('bp-Change');
  }

  getValue(): Filled {
    return this._filled;
  }

  protected override render(): React.JSX.Element {
    return (
      <FormFields
        action={this._action}
        id={this._id}
        first={this._filled}
        about={this._about}
        onChange={filled => (this._filled = filled)}
      />
    );
  }
}

function FormFields(props: {
  action: IFilledAction;
  id: string;
  first: Filled;
  about: IAbout;
  onChange: (filled: Filled) => void;
}): React.JSX.Element {
  const { action, about } = props;
  const [filled, setFilled] = React.useState(props.first);
  const fill = (name: string, value: string | number) => {
    const all = { ...filled, [name]: value };
    setFilled(all);
    props.onChange(all);
  };
  return (
    <>
      {action.fields.map(field => (
        <FieldRow
          key={field.name}
          id={idOf(action, field)}
          field={field}
          value={filled[field.name] ?? ''}
          optional={field.erasable || isEmpty(props.first[field.name])}
          staying={about.staying[field.name]}
          note={about.remarks[field.name] ?? field.help}
          onChange={value => fill(field.name, value)}
        />
      ))}
      <p className="bp-Form-note">
        In a terminal:{' '}
        <code data-testid="benchpool-command">{typed(action, props.id, props.first, filled)}</code>
      </p>
    </>
  );
}

/** Return the command for the changed fields, or with placeholders before a change. */
function typed(action: IFilledAction, id: string, first: Filled, filled: Filled): string {
  const others = differing(first, filled);
  const sent = others && optionsOf(action, asked(action, others));
  const given = sent && Object.keys(sent).length > 0 ? sent : { [action.fields[0]!.name]: LATER };
  return jobCommand(action.name, id, given);
}

/** Input of a field. The browser rejects a value out of bounds, which blocks the dialog. */
function FieldRow(props: {
  id: string;
  field: IActionField;
  value: string | number;
  optional: boolean;
  staying: string | undefined;
  note: string;
  onChange: (value: string | number) => void;
}): React.JSX.Element {
  const { id, field, value } = props;
  const isTime = field.kind === 'duration';
  const isText = isTime || field.kind === 'text' || field.kind === 'names';
  return (
    <Row label={field.title} htmlFor={id}>
      <input
        id={id}
        className={isText ? 'jp-mod-styled' : 'jp-mod-styled bp-Form-number'}
        type={isText ? 'text' : 'number'}
        min={isText ? undefined : (field.least ?? undefined)}
        max={isText ? undefined : (field.most ?? undefined)}
        maxLength={field.longest ?? undefined}
        pattern={isTime ? PATTERN : isText ? '.*\\S.*' : undefined}
        required={!props.optional}
        disabled={props.staying !== undefined}
        aria-describedby={`${id}-note`}
        value={Number.isNaN(value) ? '' : value}
        onChange={({ target }) => props.onChange(isText ? target.value : target.valueAsNumber)}
        onFocus={event => event.target.select()}
      />
      <span id={`${id}-note`} className="bp-Form-note">
        {props.staying ?? props.note}
      </span>
    </Row>
  );
}
