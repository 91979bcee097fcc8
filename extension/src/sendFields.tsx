/** Rows of the send dialog: code, size, project, and expected start. */
import * as React from 'react';
import { BOUNDS } from './bounds';
import { CellList, KernelNote } from './cellList';
import { cellsLine, faults, Field, listCells } from './draft';
import { quotaLine, startSentence, startText } from './format';
import { NO_PREVIEW } from './outages';
import { count } from './phrases';
import { Prose } from './prose';
import { ResumeLines } from './resumeLines';
import type { Sending } from './sending';
import type { IPreview, IProjectQuota } from './tokens';

const NO_PROJECT = 'You are not a member of a project. Request access in the panel Training.';

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

/** Return the fault of a field, else the error of the service about it. */
export function faultOf(sending: Sending, field: Field, wire: string = field): string | undefined {
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
        <KernelNote text={preparation?.kernel?.text ?? ''} />
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

export function SizeRow({ sending, projects }: IFieldsProps): React.JSX.Element {
  const { draft } = sending;
  const fault = faultOf(sending, 'gpus');
  return (
    <Row label="GPUs" htmlFor="benchpool-gpus">
      <div className="bp-Form-line">
        <Stepper
          id="benchpool-gpus"
          value={draft.gpus}
          most={BOUNDS.gpus.most}
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
  const asked = sending.preparation?.quota !== null && sending.preparation !== null;
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
          {projects.length === 0 && <option value="">{asked ? 'none' : 'loading…'}</option>}
          {projects.map(one => (
            <option key={one.name} value={one.name}>
              {one.name}
            </option>
          ))}
        </select>
      </label>
      <span className="bp-Form-note" data-testid="benchpool-quota">
        {project ? quotaLine(project) : asked ? NO_PROJECT : ''}
      </span>
    </>
  );
}

export function StartsRow({ sending }: { sending: Sending }): React.JSX.Element {
  const preview = sending.preparation?.preview ?? null;
  const times = sending.preparation?.schedule;
  return (
    <Row label="Starts">
      <div
        className="bp-Starts"
        data-testid="benchpool-starts"
        data-starts={preview?.starts ?? 'asking'}
        data-stale={sending.preparing}
        aria-live="polite"
      >
        {times ? (
          <span className="bp-Starts-text">{times.text}</span>
        ) : preview ? (
          <PreviewText preview={preview} />
        ) : (
          askingLine(sending)
        )}
      </div>
    </Row>
  );
}

function askingLine(sending: Sending): string {
  if (sending.preparation?.refusal || sending.error) {
    return 'The job cannot be sent with these settings.';
  }
  return sending.preparing ? 'Loading…' : NO_PREVIEW;
}

function PreviewText({ preview }: { preview: IPreview }): React.JSX.Element {
  const starts =
    preview.starts === 'waits' ? startSentence(preview.estimated_start, Date.now()) : null;
  const showsOver = /over/i.test(preview.text);
  return (
    <>
      <span className="bp-Starts-text">{startText(preview)}</span>
      {starts && <span> Starts {starts}.</span>}
      {preview.over_quota > 0 && !showsOver && (
        <span>
          {' '}
          {preview.within_quota} within quota, {preview.over_quota} over it: may be paused for
          others, then resumes by itself.
        </span>
      )}
    </>
  );
}

/** On a cluster: the image of the job and whether the home folder is mounted. */
export function FindsRow({ sending }: { sending: Sending }): React.JSX.Element | null {
  const container = sending.preparation?.preview?.container;
  return container ? (
    <Row label="Finds">
      <div className="bp-Saves" data-testid="benchpool-finds" data-stale={sending.preparing}>
        {container.text}
      </div>
    </Row>
  ) : null;
}

export function SavesRow({ sending }: { sending: Sending }): React.JSX.Element {
  const found = sending.preparation?.checkpoint;
  return (
    <Row label="Saves">
      <div className="bp-Saves" data-stale={sending.preparing}>
        {found ? <Prose text={found.text} /> : ' '}
        {found?.lines && <ResumeLines lines={found.lines} />}
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

export function TextRow(props: {
  sending: Sending;
  field:
    | 'args'
    | 'timeLimit'
    | 'priority'
    | 'name'
    | 'tags'
    | 'env'
    | 'cpus'
    | 'memory'
    | 'retries'
    | 'retryOn'
    | 'keep';
  wire: string;
  label: string;
  placeholder: string;
  note?: string;
}): React.JSX.Element {
  const { sending, field, label, note } = props;
  const id = `benchpool-${field}`;
  const fault = field === 'name' ? undefined : faultOf(sending, field, props.wire);
  return (
    <Row label={label} htmlFor={id}>
      <input
        id={id}
        data-testid={`benchpool-${label.toLowerCase().replace(' ', '-')}`}
        className="jp-mod-styled bp-Form-text"
        type="text"
        maxLength={field === 'name' ? 100 : 4096}
        value={sending.draft[field]}
        placeholder={props.placeholder}
        aria-invalid={Boolean(fault)}
        aria-describedby={note ? `${id}-note` : undefined}
        spellCheck={false}
        onChange={event => sending.update({ [field]: event.target.value })}
      />
      {note && (
        <div id={`${id}-note`} className="bp-Form-note">
          {note}
        </div>
      )}
      {fault && (
        <div className="bp-Fault" role="alert">
          {fault}
        </div>
      )}
    </Row>
  );
}
