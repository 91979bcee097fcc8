/** Sweep in the send dialog: values, cost and stop conditions. */
import * as React from 'react';
import { count } from './phrases';
import { Prose } from './prose';
import { faultOf, Row } from './sendFields';
import type { Sending } from './sending';
import { isArray, ISweepDraft, ISweptName, isSwept } from './sweepDraft';

const TASKS = '0-31, or 1,3,7, or 0-31%4 for 4 at a time';
const FORMS = '0.1, 0.01 or 1e-5 … 1e-3 log or 0..4';

const LINES: readonly {
  field: 'metric' | 'trials' | 'atOnce' | 'stopEarly' | 'gpuHours' | 'trialHours';
  label: string;
  placeholder: string;
  note?: string;
}[] = [
  {
    field: 'metric',
    label: 'Metric',
    placeholder: 'none; for example val_loss',
    note: 'metric that the code reports with benchpool.log(val_loss=…)'
  },
  {
    field: 'trials',
    label: 'Trials',
    placeholder: 'all of a grid; required if a name has a range'
  },
  { field: 'atOnce', label: 'At once', placeholder: '4' },
  {
    field: 'stopEarly',
    label: 'Stop early',
    placeholder: 'never; for example 100',
    note: 'from this step on, only the best third of the trials continues'
  },
  { field: 'gpuHours', label: 'GPU-hours', placeholder: 'no limit' },
  {
    field: 'trialHours',
    label: 'A trial takes',
    placeholder: 'not known',
    note: 'hours; used to estimate the total cost'
  }
];

export function SweepFold({ sending }: { sending: Sending }): React.JSX.Element {
  const { sweep } = sending.draft;
  const on = isSwept(sweep);
  const preview = sending.preparation?.sweep ?? null;
  const fault = faultOf(sending, 'sweep') ?? refusalOf(sending);
  const change = (part: Partial<ISweepDraft>): void =>
    sending.update({ sweep: { ...sweep, ...part } });
  return (
    <details className="bp-Fold bp-Sweeps" data-testid="benchpool-sweep">
      <summary>
        Many values{' '}
        <span className="bp-Fold-hint">
          {on && preview
            ? `${isArray(sweep) ? 'an array' : 'a sweep'} of ${count(preview.trials, isArray(sweep) ? 'task' : 'trial')}`
            : 'a sweep or an array: one job for each value or task'}
        </span>
      </summary>
      <Row label="Values">
        <Names sending={sending} change={change} />
        {fault && (
          <div className="bp-Fault" role="alert">
            {fault}
          </div>
        )}
      </Row>
      <Row label="Array" htmlFor="benchpool-array">
        <input
          id="benchpool-array"
          data-testid="benchpool-array"
          className="jp-mod-styled bp-Form-text"
          type="text"
          maxLength={10_000}
          value={sweep.array}
          placeholder={`none; for example ${TASKS}`}
          spellCheck={false}
          onChange={event => change({ array: event.target.value })}
        />
        {isArray(sweep) && (
          <div className="bp-Form-note">
            each job finds its number in BENCHPOOL_ARRAY_TASK_ID and SLURM_ARRAY_TASK_ID
          </div>
        )}
      </Row>
      {on && (
        <>
          {LINES.filter(line => !isArray(sweep) || line.field === 'trialHours').map(line => (
            <Row
              key={line.field}
              label={isArray(sweep) ? 'A task takes' : line.label}
              htmlFor={`benchpool-sweep-${line.field}`}
            >
              <input
                id={`benchpool-sweep-${line.field}`}
                className="jp-mod-styled bp-Form-text"
                type="text"
                maxLength={200}
                value={sweep[line.field]}
                placeholder={line.placeholder}
                spellCheck={false}
                onChange={event => change({ [line.field]: event.target.value })}
              />
              {line.field === 'metric' && sweep.metric.trim() !== '' && (
                <GoalChoice sweep={sweep} change={change} />
              )}
              {line.note && <div className="bp-Form-note">{line.note}</div>}
            </Row>
          ))}
          <Row label="Costs">
            <p className="bp-Starts-text" role="status" data-testid="benchpool-sweep-cost">
              {preview ? <Prose text={preview.text} /> : 'not known yet'}
            </p>
          </Row>
        </>
      )}
    </details>
  );
}

function refusalOf(sending: Sending): string | undefined {
  const refusal = sending.error ?? sending.preparation?.refusal;
  return refusal?.field?.startsWith('sweep.') ? refusal.message : undefined;
}

function Names(props: {
  sending: Sending;
  change: (part: Partial<ISweepDraft>) => void;
}): React.JSX.Element {
  const { sending, change } = props;
  const { names } = sending.draft.sweep;
  const offered = sending.preparation?.parameters ?? [];
  const put = (at: number, part: Partial<ISweptName>): void =>
    change({ names: names.map((one, i) => (i === at ? { ...one, ...part } : one)) });
  return (
    <>
      {names.map((one, at) => (
        <div key={at} className="bp-Swept">
          <input
            className="jp-mod-styled bp-Swept-name"
            type="text"
            aria-label={`Name ${at + 1}`}
            list="benchpool-sweep-names"
            value={one.name}
            placeholder={offered[0]?.name ?? 'lr'}
            spellCheck={false}
            onChange={event => put(at, { name: event.target.value })}
          />
          <input
            className="jp-mod-styled bp-Form-text"
            type="text"
            aria-label={`Values of ${one.name || `name ${at + 1}`}`}
            value={one.values}
            placeholder={FORMS}
            spellCheck={false}
            onChange={event => put(at, { values: event.target.value })}
          />
          <button
            type="button"
            className="bp-Link"
            aria-label={`Remove ${one.name || `name ${at + 1}`}`}
            onClick={() => change({ names: names.filter((_, i) => i !== at) })}
          >
            Remove
          </button>
        </div>
      ))}
      <datalist id="benchpool-sweep-names">
        {offered.map(({ name }) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <button
        type="button"
        className="bp-Link"
        onClick={() => change({ names: [...names, { name: '', values: '' }] })}
      >
        {names.length === 0 ? 'Try several values of a name' : 'Another name'}
      </button>
      {sending.draft.kind === 'script' && names.length > 0 && (
        <div className="bp-Form-note">
          {'A script gets each value as --name=value, or in place of {name} in its arguments.'}
        </div>
      )}
    </>
  );
}

function GoalChoice(props: {
  sweep: ISweepDraft;
  change: (part: Partial<ISweepDraft>) => void;
}): React.JSX.Element {
  return (
    <select
      className="jp-mod-styled"
      aria-label="Direction of the metric"
      value={props.sweep.goal}
      onChange={event => props.change({ goal: event.target.value as ISweepDraft['goal'] })}
    >
      <option value="">direction from the metric name</option>
      <option value="minimize">smaller is better</option>
      <option value="maximize">larger is better</option>
    </select>
  );
}
