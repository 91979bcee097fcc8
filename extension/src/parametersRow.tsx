/**
 * Parameters in the send dialog: a field for each parameter of the tagged cell, and folded
 * constants. A field with several values makes a sweep over its parameter.
 */
import * as React from 'react';
import { constantFields, given, type IParameterField, mainFields, TYPE_WORDS } from './parameters';
import { Row } from './sendFields';
import { Fault } from './sendMore';
import type { Sending } from './sending';
import { faultOfParameter } from './sweepFaults';
import { SEVERAL_FORMS } from './sweepDraft';

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
  const { sweep, parameters } = sending.draft;
  const fault = faultOfParameter(sending, one.name);
  const isChosen = sweep.several.includes(one.name);
  const note = one.offered
    ? (sending.preparation?.swept[one.name] ?? (one.help || TYPE_WORDS[one.type]))
    : 'no longer a parameter: clear this field';
  const common = {
    id,
    'data-testid': id,
    value: parameters[one.name] ?? '',
    'aria-invalid': fault !== null,
    'aria-describedby': `${id}-note`,
    onChange: (event: React.ChangeEvent<HTMLInputElement | HTMLSelectElement>) =>
      sending.update({ parameters: { ...parameters, [one.name]: event.target.value } })
  };
  return (
    <div className="bp-Parameter">
      <label htmlFor={id}>
        <code>{one.name}</code>
      </label>
      {one.type === 'bool' ? (
        <select {...common} className="jp-mod-styled">
          <option value="">{one.default}</option>
          {['True', 'False']
            .filter(value => value !== one.default)
            .map(value => (
              <option key={value}>{value}</option>
            ))}
          <option value="True, False">both: one job each</option>
        </select>
      ) : (
        <input
          {...common}
          className="jp-mod-styled bp-Form-text"
          type="text"
          maxLength={isChosen ? 10_000 : 65_536}
          placeholder={isChosen ? SEVERAL_FORMS : one.default}
          spellCheck={false}
        />
      )}
      <span id={`${id}-note`} className="bp-Form-note" title={one.help}>
        {note}
      </span>
      {one.offered && one.type !== 'bool' && <SeveralChoice sending={sending} name={one.name} />}
      <Fault text={fault ?? undefined} />
    </div>
  );
}

/** Button that makes a field hold several values or one value. */
function SeveralChoice({ sending, name }: IProps & { name: string }): React.JSX.Element | null {
  const { sweep } = sending.draft;
  const isChosen = sweep.several.includes(name);
  const others = sweep.several.filter(other => other !== name);
  // A number field with several values is a sweep without this choice.
  return !isChosen && name in (sending.preparation?.swept ?? {}) ? null : (
    <button
      type="button"
      className="bp-Link"
      aria-label={isChosen ? `One value of ${name}` : `Several values of ${name}`}
      title={isChosen ? 'Send one job' : 'Send one job for each value, as a sweep'}
      onClick={() =>
        sending.update({ sweep: { ...sweep, several: isChosen ? others : [...others, name] } })
      }
    >
      {isChosen ? 'one value' : 'several values'}
    </button>
  );
}
