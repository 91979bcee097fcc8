/**
 * Parameters in the send dialog: a field for each parameter of the tagged cell, and folded
 * constants.
 */
import * as React from 'react';
import { constantFields, given, type IParameterField, mainFields, TYPE_WORDS } from './parameters';
import { Row } from './sendFields';
import type { Sending } from './sending';

interface IProps {
  sending: Sending;
}

/** Parameter fields, or null without parameters and values. */
export function ParametersRow({ sending }: IProps): React.JSX.Element | null {
  const offered = sending.preparation?.parameters ?? [];
  const typed = sending.draft.parameters;
  const main = mainFields(offered, typed);
  const constants = constantFields(offered);
  const isAsked = sending.draft.kind !== 'script' && sending.preparation !== null;
  if (!isAsked || main.length + constants.length === 0) {
    return null;
  }
  return (
    <Row label="Parameters">
      <div className="bp-Parameters" data-testid="benchpool-parameters">
        {main.map(one => (
          <Field key={one.name} sending={sending} one={one} />
        ))}
        {constants.length > 0 && <Constants sending={sending} constants={constants} />}
      </div>
    </Row>
  );
}

/** Constants, unfolded if one had a value when the dialog was opened. */
function Constants(props: IProps & { constants: IParameterField[] }): React.JSX.Element {
  const { sending, constants } = props;
  const typed = given(sending.draft.parameters);
  const [opened] = React.useState(constants.some(({ name }) => name in typed));
  return (
    <details className="bp-Fold" open={opened || undefined}>
      <summary data-testid="benchpool-constants">
        {constants.length === 1 ? '1 constant' : `${constants.length} constants`}{' '}
        <span className="bp-Fold-hint">of the cells, which you can change for this run</span>
      </summary>
      {constants.map(one => (
        <Field key={one.name} sending={sending} one={one} />
      ))}
    </details>
  );
}

function Field({ sending, one }: IProps & { one: IParameterField }): React.JSX.Element {
  const id = `benchpool-parameter-${one.name}`;
  const refusal = sending.error ?? sending.preparation?.refusal;
  const fault = refusal?.field === `parameters.${one.name}` ? refusal.message : null;
  const note = one.offered
    ? one.help || TYPE_WORDS[one.type]
    : 'no longer a parameter: clear this field';
  const change = (value: string) => {
    const parameters = { ...sending.draft.parameters, [one.name]: value };
    sending.update({ parameters });
  };
  const common = {
    id,
    'data-testid': id,
    value: sending.draft.parameters[one.name] ?? '',
    'aria-invalid': fault !== null,
    'aria-describedby': `${id}-note`
  };
  return (
    <div className="bp-Parameter">
      <label htmlFor={id}>
        <code>{one.name}</code>
      </label>
      {one.type === 'bool' ? (
        <select
          {...common}
          className="jp-mod-styled"
          onChange={event => change(event.target.value)}
        >
          <option value="">{one.default}</option>
          {['True', 'False']
            .filter(value => value !== one.default)
            .map(value => (
              <option key={value}>{value}</option>
            ))}
        </select>
      ) : (
        <input
          {...common}
          className="jp-mod-styled bp-Form-text"
          type="text"
          maxLength={65536}
          placeholder={one.default}
          spellCheck={false}
          onChange={event => change(event.target.value)}
        />
      )}
      <span id={`${id}-note`} className="bp-Form-note">
        {note}
      </span>
      {fault && (
        <div className="bp-Fault" role="alert">
          {fault}
        </div>
      )}
    </div>
  );
}
