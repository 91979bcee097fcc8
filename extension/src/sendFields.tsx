/**
 * The rows of the send dialog: what runs, how big, for which project, when it would start.
 */
import * as React from 'react';
import {
  cellsLine,
  faults,
  Field,
  IDraft,
  IListedCell,
  listCells,
  MAX_GPUS,
  MAX_WORKERS
} from './draft';
import { count, quotaLine, size, startRange } from './format';
import type { Sending } from './sending';
import type { IPreparation, IPreview, IProjectQuota } from './tokens';

export interface IFieldsProps {
  sending: Sending;
  projects: readonly IProjectQuota[];
}

export function Row(props: {
  label: string;
  htmlFor?: string;
  children: React.ReactNode;
}): React.JSX.Element {
  return (
    <div className="bp-Form-row">
      {props.htmlFor ? (
        <label className="bp-Form-label" htmlFor={props.htmlFor}>
          {props.label}
        </label>
      ) : (
        <span className="bp-Form-label">{props.label}</span>
      )}
      <div className="bp-Form-value">{props.children}</div>
    </div>
  );
}

/** A field's own fault, or what the service refused about it. */
function faultOf(sending: Sending, field: Field, wire: string = field): string | undefined {
  const refusal = sending.error ?? sending.preparation?.refusal;
  return faults(sending.draft)[field] ?? (refusal?.field === wire ? refusal.message : undefined);
}

export function RunsRow({ sending }: { sending: Sending }): React.JSX.Element {
  const { draft, subject, preparation } = sending;
  if (draft.kind === 'script' || subject.cells === null) {
    return <Row label="Runs">{scriptLine(sending)}</Row>;
  }
  const cells = listCells(subject, draft, preparation);
  return (
    <Row label="Runs">
      <KindChoice sending={sending} />
      <details className="bp-Fold">
        <summary data-testid="benchpool-cells">
          {cellsLine(cells)} <span className="bp-Fold-hint">why these?</span>
        </summary>
        <CellList cells={cells} onToggle={(id, on) => toggle(sending, id, on)} />
      </details>
    </Row>
  );
}

function scriptLine(sending: Sending): React.ReactNode {
  const what = sending.draft.kind === 'script' ? 'the script' : 'the whole notebook, as saved:';
  return (
    <span className="bp-Form-line">
      {what} <code>{sending.subject.path}</code>
    </span>
  );
}

function toggle(sending: Sending, id: string, on: boolean): void {
  sending.update({ toggles: { ...sending.draft.toggles, [id]: on } });
}

function KindChoice({ sending }: { sending: Sending }): React.JSX.Element {
  const kinds = [
    ['cells', 'Selected cells'],
    ['notebook', 'Whole notebook']
  ] as const;
  return (
    <div className="bp-Choice" role="radiogroup" aria-label="What to send">
      {kinds.map(([kind, label]) => (
        <label key={kind} className="bp-Choice-item">
          <input
            type="radio"
            name="benchpool-kind"
            checked={sending.draft.kind === kind}
            onChange={() => sending.update({ kind, toggles: {} })}
          />
          <span>{label}</span>
        </label>
      ))}
    </div>
  );
}

function CellList(props: {
  cells: readonly IListedCell[];
  onToggle: (id: string, on: boolean) => void;
}): React.JSX.Element {
  return (
    <ul className="bp-CellList">
      {props.cells.map(cell => (
        <li key={cell.id} className="bp-CellList-item">
          <label>
            <input
              type="checkbox"
              checked={cell.included}
              onChange={event => props.onToggle(cell.id, event.target.checked)}
            />
            <span className="bp-CellList-number">{cell.number}</span>
            <code className="bp-CellList-code">{cell.firstLine}</code>
            <span className="bp-CellList-why">{cell.why}</span>
          </label>
        </li>
      ))}
    </ul>
  );
}

export function SizeRow({ sending, projects }: IFieldsProps): React.JSX.Element {
  const { draft } = sending;
  const fault = faultOf(sending, 'gpus');
  return (
    <Row label="GPUs" htmlFor="benchpool-gpus">
      <div className="bp-Form-line">
        <Stepper
          id="benchpool-gpus"
          value={draft.gpus}
          most={MAX_GPUS}
          invalid={Boolean(fault)}
          onChange={gpus => sending.update({ gpus })}
        />
        {draft.workers > 1 && <span>on each of {count(draft.workers, 'worker')}</span>}
        <ProjectChoice sending={sending} projects={projects} />
      </div>
      {fault && (
        <div className="bp-Fault" role="alert">
          {fault}
        </div>
      )}
    </Row>
  );
}

function Stepper(props: {
  id: string;
  value: number;
  most: number;
  invalid: boolean;
  onChange: (value: number) => void;
}): React.JSX.Element {
  const step = (by: number) =>
    props.onChange(Math.min(props.most, Math.max(1, (props.value || 0) + by)));
  return (
    <span className="bp-Stepper">
      <button type="button" aria-label="One GPU less" onClick={() => step(-1)}>
        −
      </button>
      <input
        id={props.id}
        data-testid="benchpool-gpus"
        className="jp-mod-styled"
        type="number"
        min={1}
        max={props.most}
        step={1}
        required
        autoFocus
        aria-invalid={props.invalid}
        value={Number.isNaN(props.value) ? '' : props.value}
        onChange={event => props.onChange(event.target.valueAsNumber)}
        onFocus={event => event.target.select()}
      />
      <button type="button" aria-label="One GPU more" onClick={() => step(1)}>
        +
      </button>
    </span>
  );
}

function ProjectChoice({ sending, projects }: IFieldsProps): React.JSX.Element {
  const chosen = sending.draft.project ?? sending.preparation?.preview?.project ?? '';
  const project = projects.find(one => one.name === chosen) ?? projects[0];
  return (
    <>
      <label className="bp-Form-inline">
        <span>Project</span>
        <select
          className="jp-mod-styled"
          data-testid="benchpool-project"
          value={project?.name ?? ''}
          disabled={projects.length === 0}
          onChange={event => sending.update({ project: event.target.value })}
        >
          {projects.length === 0 && <option value="">asking…</option>}
          {projects.map(one => (
            <option key={one.name} value={one.name}>
              {one.name}
            </option>
          ))}
        </select>
      </label>
      <span className="bp-Form-note" data-testid="benchpool-quota">
        {project ? quotaLine(project) : ''}
      </span>
    </>
  );
}

export function StartsRow({ sending }: { sending: Sending }): React.JSX.Element {
  const preview = sending.preparation?.preview ?? null;
  return (
    <Row label="Starts">
      <div
        className="bp-Starts"
        data-testid="benchpool-starts"
        data-starts={preview?.starts ?? 'asking'}
        data-stale={sending.preparing}
        aria-live="polite"
      >
        {preview ? <PreviewText preview={preview} /> : askingLine(sending)}
      </div>
    </Row>
  );
}

function askingLine(sending: Sending): string {
  if (sending.preparation?.refusal || sending.error) {
    return 'It cannot be sent like this.';
  }
  return sending.preparing
    ? 'Asking the pool…'
    : 'The pool does not answer now, so the start is not known yet. Send tries again.';
}

function PreviewText({ preview }: { preview: IPreview }): React.JSX.Element {
  const range = preview.starts === 'now' ? null : startRange(preview.estimated_start, Date.now());
  const says = /over/i.test(preview.text);
  return (
    <>
      <span className="bp-Starts-text">{preview.text}</span>
      {range && !preview.text.includes(range) && <span> Likely {range}.</span>}
      {preview.over_quota > 0 && !says && (
        <span>
          {' '}
          {preview.within_quota} within quota, {preview.over_quota} over it: may be paused for
          others, then resumes by itself.
        </span>
      )}
    </>
  );
}

export function SavesRow({ sending }: { sending: Sending }): React.JSX.Element {
  const found = sending.preparation?.checkpoint;
  return (
    <Row label="Saves">
      <div className="bp-Saves" data-stale={sending.preparing}>
        {found ? found.text : ' '}
      </div>
    </Row>
  );
}

export function ArgumentsRow({ sending }: { sending: Sending }): React.JSX.Element {
  return (
    <TextRow
      sending={sending}
      field="args"
      wire="args"
      label="Arguments"
      placeholder="--epochs 30 --lr 3e-4"
    />
  );
}

function TextRow(props: {
  sending: Sending;
  field: 'args' | 'timeLimit' | 'priority' | 'name';
  wire: string;
  label: string;
  placeholder: string;
}): React.JSX.Element {
  const { sending, field, label } = props;
  const id = `benchpool-${field}`;
  const fault = field === 'name' ? undefined : faultOf(sending, field, props.wire);
  return (
    <Row label={label} htmlFor={id}>
      <input
        id={id}
        className="jp-mod-styled bp-Form-text"
        type="text"
        maxLength={field === 'name' ? 100 : 4096}
        value={sending.draft[field]}
        placeholder={props.placeholder}
        aria-invalid={Boolean(fault)}
        spellCheck={false}
        onChange={event => sending.update({ [field]: event.target.value } as Partial<IDraft>)}
      />
      {fault && (
        <div className="bp-Fault" role="alert">
          {fault}
        </div>
      )}
    </Row>
  );
}

export function MoreFold({ sending }: { sending: Sending }): React.JSX.Element {
  const { preparation, draft } = sending;
  const fault = faultOf(sending, 'workers');
  return (
    <details className="bp-Fold bp-More">
      <summary>
        More <span className="bp-Fold-hint">{moreHint(preparation)}</span>
      </summary>
      <TextRow
        sending={sending}
        field="name"
        wire="name"
        label="Name"
        placeholder={preparation?.name ?? ''}
      />
      <Row label="Workers" htmlFor="benchpool-workers">
        <input
          id="benchpool-workers"
          className="jp-mod-styled bp-Form-number"
          type="number"
          min={1}
          max={MAX_WORKERS}
          value={Number.isNaN(draft.workers) ? '' : draft.workers}
          aria-invalid={Boolean(fault)}
          onChange={event => sending.update({ workers: event.target.valueAsNumber })}
        />
        <span className="bp-Form-note">processes that train together, each with these GPUs</span>
        {fault && (
          <div className="bp-Fault" role="alert">
            {fault}
          </div>
        )}
      </Row>
      <TextRow
        sending={sending}
        field="timeLimit"
        wire="time_limit_s"
        label="Time limit"
        placeholder="none; for example 90 min, 2 h"
      />
      <TextRow
        sending={sending}
        field="priority"
        wire="priority"
        label="Priority"
        placeholder="50; higher goes first among your project's jobs"
      />
      <Facts preparation={preparation} />
    </details>
  );
}

function moreHint(preparation: IPreparation | null): string {
  const files = preparation?.files;
  return files
    ? `name, time limit, ${count(files.count, 'file')} (${size(files.bytes)}), environment, results`
    : 'name, time limit, environment, results';
}

function Facts({ preparation }: { preparation: IPreparation | null }): React.JSX.Element | null {
  if (!preparation) {
    return null;
  }
  const facts: [string, string | null][] = [
    ['Environment', preparation.interpreter],
    ['Runs in', preparation.working_dir],
    ['Results to', preparation.output_dir]
  ];
  const leftOut = preparation.files?.left_out ?? [];
  return (
    <>
      {facts.map(
        ([label, value]) =>
          value && (
            <Row key={label} label={label}>
              <code className="bp-Form-code">{value}</code>
            </Row>
          )
      )}
      {leftOut.length > 0 && (
        <Row label="Left out">
          <ul className="bp-LeftOut">
            {leftOut.map(file => (
              <li key={file.path}>
                <code>{file.path}</code> {file.why}
              </li>
            ))}
          </ul>
        </Row>
      )}
    </>
  );
}
