/** Fold of the send dialog: name, workers, limits, and environment. */
import * as React from 'react';
import { BOUNDS } from './bounds';
import { PRIORITY_HELP } from './changing';
import { hasNodes, modelChoices } from './draft';
import { size } from './format';
import { count } from './phrases';
import { AfterRow } from './sendAfter';
import { faultOf, Row, TextRow } from './sendFields';
import { KeptRows } from './sendKept';
import { RetryRows } from './sendRetries';
import type { Sending } from './sending';
import type { IJob, IPreparation, IStatus } from './tokens';

interface IMoreProps {
  sending: Sending;
  status: IStatus | null;
}

export function MoreFold({
  sending,
  status,
  jobs
}: IMoreProps & { jobs: readonly IJob[] }): React.JSX.Element {
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
          data-testid="benchpool-workers"
          className="jp-mod-styled bp-Form-number"
          type="number"
          min={BOUNDS.workers.least}
          max={BOUNDS.workers.most}
          value={Number.isNaN(draft.workers) ? '' : draft.workers}
          aria-invalid={Boolean(fault)}
          onChange={event => sending.update({ workers: event.target.valueAsNumber })}
        />
        <span className="bp-Form-note">processes that train together, each with these GPUs</span>
        <Fault text={fault} />
      </Row>
      <SpreadRow sending={sending} status={status} />
      <ModelRow sending={sending} status={status} />
      <TextRow
        sending={sending}
        field="timeLimit"
        wire="time_limit_s"
        label="Time limit"
        placeholder="none; for example 90m, 2h"
      />
      <TextRow
        sending={sending}
        field="priority"
        wire="priority"
        label="Priority"
        placeholder="50"
        note={PRIORITY_HELP}
      />
      <TextRow
        sending={sending}
        field="tags"
        wire="tags"
        label="Tags"
        placeholder="none; for example baseline sweep-3"
      />
      <TextRow
        sending={sending}
        field="env"
        wire="env"
        label="Variables"
        placeholder="none; for example SEED=1 MODE='two words'"
        note="Other environment variables of the notebook are not passed to the job."
      />
      <TextRow
        sending={sending}
        field="cpus"
        wire="cpus"
        label="Processors"
        placeholder="per worker; default of the pool"
      />
      <TextRow
        sending={sending}
        field="memory"
        wire="memory_gib"
        label="Memory"
        placeholder="per worker, in GiB; default of the pool"
      />
      <RetryRows sending={sending} />
      <KeptRows sending={sending} />
      <AfterRow sending={sending} jobs={jobs} />
      <Facts preparation={preparation} />
    </details>
  );
}

/** Choice to spread workers, shown for several workers and several nodes. */
function SpreadRow({ sending, status }: IMoreProps): React.JSX.Element | null {
  const { draft } = sending;
  const fault = faultOf(sending, 'spread');
  return draft.workers > 1 && (draft.spread || hasNodes(status)) ? (
    <Row label="Nodes">
      <label className="bp-Check">
        <input
          data-testid="benchpool-spread"
          type="checkbox"
          checked={draft.spread}
          onChange={event => sending.update({ spread: event.target.checked })}
        />
        <span>one node per worker if possible</span>
      </label>
      <Fault text={fault} />
    </Row>
  ) : null;
}

/** Choice of the GPU model, shown for several models or after a former choice. */
function ModelRow({ sending, status }: IMoreProps): React.JSX.Element | null {
  const { draft } = sending;
  const models = modelChoices(status, draft.gpuModel);
  const fault = faultOf(sending, 'gpuModel', 'gpu_models');
  return models.length > 1 || draft.gpuModel ? (
    <Row label="GPU model" htmlFor="benchpool-gpu-model">
      <select
        id="benchpool-gpu-model"
        data-testid="benchpool-gpu-model"
        className="jp-mod-styled"
        value={draft.gpuModel}
        aria-invalid={Boolean(fault)}
        onChange={event => sending.update({ gpuModel: event.target.value })}
      >
        <option value="">any</option>
        {models.map(model => (
          <option key={model} value={model}>
            {model}
          </option>
        ))}
      </select>
      <Fault text={fault} />
    </Row>
  ) : null;
}

export function Fault({ text }: { text: string | undefined }): React.JSX.Element | null {
  return text ? (
    <div className="bp-Fault" role="alert">
      {text}
    </div>
  ) : null;
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
    ['Runs in', preparation.working_dir === '.' ? './' : preparation.working_dir],
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
