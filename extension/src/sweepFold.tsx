/** Sweep in the send dialog: values, cost and stop conditions. */
import * as React from 'react';
import { useOpenedWhen } from './hooks';
import { count } from './phrases';
import { Prose } from './prose';
import { Row } from './sendFields';
import { Fault } from './sendMore';
import type { Sending } from './sending';
import {
  isArray,
  ISweepDraft,
  ISweptName,
  isSwept,
  METHODS,
  SEVERAL_FORMS,
  type SweepField
} from './sweepDraft';
import { faultOfAnswer, faultOfNames } from './sweepFaults';

const TASKS = '0-31, or 1,3,7, or 0-31%4 for 4 at a time';

interface ILimit {
  field: Exclude<SweepField, 'array' | 'method' | 'metric' | 'goal'>;
  label: string;
  placeholder: string;
  note: string;
}

const LIMITS: readonly ILimit[] = [
  { field: 'trials', label: 'Trials', placeholder: 'all of a grid', note: 'at most' },
  { field: 'atOnce', label: 'At once', placeholder: '4', note: 'trials at a time' },
  {
    field: 'stopEarly',
    label: 'Stop early',
    placeholder: 'never; for example 100',
    note: 'from this step on, only the best third continues'
  },
  {
    field: 'patience',
    label: 'Patience',
    placeholder: 'no limit',
    note: 'ends after this number of trials that are no better'
  },
  {
    field: 'goodEnough',
    label: 'Good enough',
    placeholder: 'none',
    note: 'metric value that ends the sweep'
  },
  { field: 'gpuHours', label: 'GPU-hours', placeholder: 'no limit', note: 'for all trials' }
];

const STEPS: ILimit = {
  field: 'trialSteps',
  label: 'Its steps',
  placeholder: 'not known',
  note: 'counts the savings of early stopping'
};

/** Return the field of a trial's length. `hours`: its length as similar jobs, or null. */
function lengthOf(hours: number | null): ILimit {
  return {
    field: 'trialHours',
    label: 'A trial takes',
    placeholder: hours === null ? 'not known' : `${Number(hours.toPrecision(2))}, as similar jobs`,
    note: 'hours, for the expected cost'
  };
}

interface IPartProps {
  sending: Sending;
  change: (part: Partial<ISweepDraft>) => void;
}

export function SweepFold({ sending }: { sending: Sending }): React.JSX.Element {
  const { sweep } = sending.draft;
  const preview = sending.preparation?.sweep ?? null;
  const inFields = Object.keys(sending.preparation?.swept ?? {}).length > 0;
  const fold = useOpenedWhen(inFields || sweep.several.length > 0);
  const array = isArray(sweep);
  const length = [
    lengthOf(preview?.trial_hours ?? null),
    ...(sweep.stopEarly.trim() === '' || array ? [] : [STEPS])
  ];
  const change = (part: Partial<ISweepDraft>): void =>
    sending.update({ sweep: { ...sweep, ...part } });
  return (
    <details ref={fold} className="bp-Fold bp-Sweeps" data-testid="benchpool-sweep">
      <summary>
        Many values{' '}
        <span className="bp-Fold-hint">
          {preview
            ? `${array ? 'an array' : 'a sweep'} of ${count(preview.trials, array ? 'task' : 'trial')}`
            : 'a sweep or an array: one job for each value or task'}
        </span>
      </summary>
      <Row label="Values">
        <Names sending={sending} change={change} />
        <Fault text={faultOfNames(sending)} />
      </Row>
      <ArrayRow sending={sending} change={change} />
      {(isSwept(sweep) || inFields) && (
        <>
          {array ? (
            <Limits sending={sending} change={change} limits={length} />
          ) : (
            <>
              <MethodRow sending={sending} change={change} />
              <MetricRow sending={sending} change={change} />
              <Limits sending={sending} change={change} limits={[...LIMITS, ...length]} />
            </>
          )}
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

function ArrayRow({ sending, change }: IPartProps): React.JSX.Element {
  const { array } = sending.draft.sweep;
  return (
    <Row label="Array" htmlFor="benchpool-array">
      <input
        id="benchpool-array"
        data-testid="benchpool-array"
        className="jp-mod-styled bp-Form-text"
        type="text"
        maxLength={10_000}
        value={array}
        placeholder={`none; for example ${TASKS}`}
        spellCheck={false}
        onChange={event => change({ array: event.target.value })}
      />
      {isArray(sending.draft.sweep) && (
        <div className="bp-Form-note">
          each job finds its number in BENCHPOOL_ARRAY_TASK_ID and SLURM_ARRAY_TASK_ID
        </div>
      )}
      <Fault text={faultOfAnswer(sending, 'array')} />
    </Row>
  );
}

function MethodRow({ sending, change }: IPartProps): React.JSX.Element {
  const id = 'benchpool-sweep-method';
  return (
    <Row label="Method" htmlFor={id}>
      <select
        id={id}
        data-testid={id}
        className="jp-mod-styled"
        value={sending.draft.sweep.method}
        onChange={event => change({ method: event.target.value as ISweepDraft['method'] })}
      >
        <option value="">grid, or random draws if a name has a range</option>
        {Object.entries(METHODS).map(([method, words]) => (
          <option key={method} value={method}>
            {words}
          </option>
        ))}
      </select>
      <Fault text={faultOfAnswer(sending, 'method')} />
    </Row>
  );
}

function MetricRow({ sending, change }: IPartProps): React.JSX.Element {
  const { sweep } = sending.draft;
  const id = 'benchpool-sweep-metric';
  return (
    <Row label="Metric" htmlFor={id}>
      <div className="bp-Swept">
        <input
          id={id}
          className="jp-mod-styled bp-Form-text"
          type="text"
          maxLength={200}
          value={sweep.metric}
          placeholder="none; for example val_loss"
          spellCheck={false}
          onChange={event => change({ metric: event.target.value })}
        />
        {sweep.metric.trim() !== '' && <GoalChoice sweep={sweep} change={change} />}
      </div>
      <div className="bp-Form-note">
        metric that the code reports with benchpool.log(val_loss=…)
      </div>
      <Fault text={faultOfAnswer(sending, 'metric') ?? faultOfAnswer(sending, 'goal')} />
    </Row>
  );
}

/** Short fields side by side. */
function Limits(props: IPartProps & { limits: readonly ILimit[] }): React.JSX.Element {
  const { sending, change, limits } = props;
  const { sweep } = sending.draft;
  return (
    <div className="bp-Limits">
      {limits.map(({ field, label, placeholder, note }) => {
        const id = `benchpool-sweep-${field}`;
        const fault = faultOfAnswer(sending, field);
        return (
          <div key={field}>
            <label className="bp-Form-label" htmlFor={id}>
              {isArray(sweep) ? 'A task takes' : label}
            </label>
            <input
              id={id}
              className="jp-mod-styled bp-Form-text"
              type="text"
              maxLength={40}
              value={sweep[field]}
              placeholder={placeholder}
              aria-invalid={fault !== undefined}
              aria-describedby={`${id}-note`}
              spellCheck={false}
              onChange={event => change({ [field]: event.target.value })}
            />
            <div id={`${id}-note`} className="bp-Form-note">
              {note}
            </div>
            <Fault text={fault} />
          </div>
        );
      })}
    </div>
  );
}

function Names({ sending, change }: IPartProps): React.JSX.Element {
  const { names } = sending.draft.sweep;
  const offered = sending.preparation?.parameters ?? [];
  const put = (at: number, part: Partial<ISweptName>): void =>
    change({ names: names.map((one, i) => (i === at ? { ...one, ...part } : one)) });
  const inFields = Object.entries(sending.preparation?.swept ?? {}).filter(
    ([name]) => !names.some(one => one.name.trim() === name)
  );
  return (
    <>
      {inFields.map(([name, words]) => (
        <div key={name}>
          <code>{name}</code> <span className="bp-Form-note">{words}</span>
        </div>
      ))}
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
            placeholder={SEVERAL_FORMS}
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
