/** Side panel: the pool in one sentence, then the jobs, newest first. */
import type { Message } from '@lumino/messaging';
import { ISignal, Signal } from '@lumino/signaling';
import type { Widget } from '@lumino/widgets';
import { ReactWidget } from '@jupyterlab/ui-components';
import * as React from 'react';
import type { Api } from './api';
import type { JobActions } from './actions';
import { notificationsPage } from './addresses';
import { standBeside } from './besidePanel';
import { reportsOf } from './curveModel';
import { reclaimRequestText, isTerminal, quotaLine } from './format';
import type { Hints } from './hints';
import { HintsBox, SEND_KEYS } from './hintsBox';
import { useChanged, useNow } from './hooks';
import { trainIcon } from './icons';
import type { IOpeners } from './jobDetails';
import { JobRow } from './jobRow';
import { labelled, labelsIn } from './labels';
import { ListTools, useNarrowing } from './listTools';
import type { JobsModel, Scope } from './model';
import { countCleared, IGroup, narrowed } from './narrowing';
import { settle } from './order';
import { OverlaidCurves } from './overlay';
import { sendsOf } from './overlayModel';
import { entries, isSweep } from './sweepModel';
import { SweepRow } from './sweepRow';
import type { IJob } from './tokens';
import type { AccessRequests } from './accessRequests';
import { AccessRequestsBox } from './accessRequestsBox';

/** Update interval of times in live rows, in milliseconds. Ended jobs are updated once a minute. */
const TICK_MS = 2000;
const SLOW_MS = 60_000;

/** Open row and row to focus, set by badges, toasts and commands. */
export class PanelState {
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get open(): string | null {
    return this._open;
  }

  /** Return the row to scroll into view and clear it. */
  takeFocus(): string | null {
    const id = this._focus;
    this._focus = null;
    return id;
  }

  toggle(id: string): void {
    this._open = this._open === id ? null : id;
    this._changed.emit();
  }

  show(id: string): void {
    this._open = id;
    this._focus = id;
    this._changed.emit();
  }

  private readonly _changed = new Signal<this, void>(this);
  private _open: string | null = null;
  private _focus: string | null = null;
}

export interface IPanelOptions {
  model: JobsModel;
  actions: JobActions;
  open: IOpeners;
  state: PanelState;
  hints: Hints;
  accessRequests: AccessRequests;
  /** Called when the panel is shown. */
  onShown: () => void;
}

export class JobsPanel extends ReactWidget {
  constructor(private readonly _options: IPanelOptions) {
    super();
    this.id = 'benchpool-jobs';
    this.addClass('bp-Panel');
    this.title.icon = trainIcon;
    this.title.caption = 'Training jobs';
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', 'Training jobs');
    this.node.tabIndex = -1;
  }

  protected override onActivateRequest(): void {
    this.node.focus();
  }

  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    standBeside(this.node.getBoundingClientRect());
    this._options.onShown();
  }

  protected override onAfterHide(message: Message): void {
    super.onAfterHide(message);
    standBeside(null);
  }

  protected override onResize(message: Widget.ResizeMessage): void {
    super.onResize(message);
    standBeside(this.isVisible ? this.node.getBoundingClientRect() : null);
  }

  protected override render(): React.JSX.Element {
    return <PanelView {...this._options} />;
  }
}

function PanelView(props: IPanelOptions): React.JSX.Element {
  const { model } = props;
  useChanged(model);
  return (
    <>
      <header className="bp-Panel-head">
        <h2 className="bp-Panel-title">Training</h2>
        <ScopeChoice model={model} />
      </header>
      <HintsBox hints={props.hints} />
      <Pool model={model} />
      <AccessRequestsBox accessRequests={props.accessRequests} model={model} />
      <JobList {...props} />
    </>
  );
}

function ScopeChoice({ model }: { model: JobsModel }): React.JSX.Element {
  const scopes: [Scope, string][] = [
    ['mine', 'Mine'],
    ['all', 'All']
  ];
  return (
    <div className="bp-Choice" role="radiogroup" aria-label="Whose jobs">
      {scopes.map(([scope, label]) => (
        <label key={scope} className="bp-Choice-item">
          <input
            type="radio"
            name="benchpool-scope"
            checked={model.scope === scope}
            onChange={() => void model.setScope(scope)}
          />
          <span>{label}</span>
        </label>
      ))}
    </div>
  );
}

function Pool({ model }: { model: JobsModel }): React.JSX.Element {
  const { connection, status, quota } = model;
  const page = notificationsPage(status);
  return (
    <div className="bp-Pool">
      {connection.state === 'degraded' && (
        <p className="bp-Note bp-mod-warn" role="status" data-testid="benchpool-degraded">
          {connection.text}
        </p>
      )}
      {status && <p className="bp-Pool-text">{status.text}</p>}
      {status?.simulated && (
        <p className="bp-Note" data-testid="benchpool-simulated">
          Simulated GPUs: jobs run on the processor only.
        </p>
      )}
      {status && !status.health.ok && (
        <p className="bp-Note bp-mod-warn">{status.health.problems.join(' ')}</p>
      )}
      {quota?.build.held
        .map(held => reclaimRequestText(held, Date.now()))
        .filter(text => text !== null)
        .map(text => (
          <p key={text} className="bp-Note bp-mod-warn" data-testid="benchpool-reclaim-request">
            {text}
          </p>
        ))}
      {quota?.gpu_hours && (
        <p className="bp-Note" data-testid="benchpool-gpu-hours">
          You used {quota.gpu_hours.text}.
        </p>
      )}
      {page && (
        <p className="bp-Note">
          <a href={page} target="_blank" rel="noopener noreferrer">
            Notifications by mail or chat
          </a>
        </p>
      )}
      {quota?.projects.map(project => (
        <p key={project.name} className="bp-Pool-project">
          <span className="bp-Pool-name">{project.name}</span> {quotaLine(project)}
        </p>
      ))}
    </div>
  );
}

function JobList({ model, actions, open, state }: IPanelOptions): React.JSX.Element {
  useChanged(state);
  const now = useNow(TICK_MS);
  const [hovered, setHovered] = React.useState(false);
  const [label, setLabel] = React.useState('');
  const [narrowing, narrow] = useNarrowing();
  const shown = React.useRef<readonly string[]>([]);
  const order = settle(
    shown.current,
    model.jobs.map(job => job.id),
    hovered
  );
  const list = React.useRef<HTMLUListElement>(null);
  React.useEffect(() => {
    shown.current = order.shown;
    focusRow(list.current, state);
  });
  const onToggle = React.useCallback((id: string) => state.toggle(id), [state]);
  const onAction = React.useCallback<React.ComponentProps<typeof JobRow>['onAction']>(
    (action, job, wanted) => void actions.run(action, job, wanted),
    [actions]
  );
  if (model.loaded && order.shown.length === 0) {
    return <Empty scope={model.scope} />;
  }
  const all = order.shown.map(id => model.job(id)).filter((job): job is IJob => job !== null);
  const labels = labelsIn(all);
  const chosen = labels.includes(label) ? label : '';
  const jobs = narrowed(labelled(all, chosen), narrowing);
  const rowOf = (job: IJob): React.JSX.Element => (
    <JobRow
      key={job.id}
      job={job}
      now={clockOf(job, now)}
      api={model.api}
      open={open}
      isOpen={state.open === job.id}
      showUser={model.scope === 'all'}
      onToggle={onToggle}
      onAction={onAction}
    />
  );
  return (
    <>
      <ListTools
        narrowing={narrowing}
        change={narrow}
        ended={jobs.filter(job => isTerminal(job.state)).length}
        cleared={countCleared(all, narrowing.clearedAt)}
        labels={labels}
        label={chosen}
        onLabel={setLabel}
      />
      <button
        type="button"
        className="bp-Held bp-Link"
        hidden={order.held === 0}
        onClick={() => setHovered(false)}
      >
        {order.held === 1 ? 'Show 1 new job' : `Show ${order.held} new jobs`}
      </button>
      <ul
        ref={list}
        className="bp-List"
        aria-label="Jobs, newest first"
        aria-busy={!model.loaded}
        onPointerMove={() => setHovered(true)}
        onPointerLeave={() => setHovered(false)}
      >
        {entries(jobs).map(entry =>
          isSweep(entry) ? (
            <SweepRow
              key={entry.sweep}
              entry={entry}
              api={model.api}
              now={now}
              wanted={state.open}
              onToggle={onToggle}
              rowOf={rowOf}
            />
          ) : (
            <Group
              key={entry.job.id}
              group={entry}
              api={model.api}
              now={now}
              wanted={state.open}
              rowOf={rowOf}
            />
          )
        )}
      </ul>
      {jobs.length === 0 && all.length > 0 && (
        <p className="bp-Empty" role="status" data-testid="benchpool-no-match">
          {`No match among ${all.length === 1 ? '1 job' : `${all.length} jobs`}.`}
        </p>
      )}
      {!model.loaded && model.connection.state === 'connecting' && (
        <p className="bp-Empty">{model.connection.text}</p>
      )}
    </>
  );
}

/** Newest job of a group with a button that shows the earlier ones. */
function Group(props: {
  group: IGroup;
  api: Api;
  now: number;
  wanted: string | null;
  rowOf: (job: IJob) => React.JSX.Element;
}): React.JSX.Element {
  const { job, earlier } = props.group;
  const [unfolded, setUnfolded] = React.useState(false);
  const isShown = unfolded || earlier.some(each => each.id === props.wanted);
  return (
    <>
      {props.rowOf(job)}
      {earlier.length > 0 && (
        <li className="bp-Earlier">
          <button
            type="button"
            className="bp-Link"
            aria-expanded={isShown}
            onClick={() => setUnfolded(!isShown)}
          >
            {`${isShown ? 'Hide' : 'Show'} ${earlier.length} sent earlier as ${job.name}`}
          </button>
        </li>
      )}
      {isShown && (
        <li className="bp-Earlier">
          <OverlaidCurves
            runs={sendsOf(props.group)}
            stand={`${job.state}/${reportsOf(job)}`}
            api={props.api}
          />
        </li>
      )}
      {isShown && earlier.map(props.rowOf)}
    </>
  );
}

/** Return a coarse clock for jobs that ended long ago, so that their rows do not change. */
function clockOf(job: IJob, now: number): number {
  const isLong = job.ended !== null && now - Date.parse(job.ended) > 2 * SLOW_MS;
  return isLong ? Math.floor(now / SLOW_MS) * SLOW_MS : now;
}

function focusRow(list: HTMLElement | null, state: PanelState): void {
  const wanted = state.open;
  const row = wanted && list?.querySelector<HTMLElement>(`[data-job-id="${CSS.escape(wanted)}"]`);
  if (row && state.takeFocus() !== null) {
    row.scrollIntoView({ block: 'start' });
    row.querySelector<HTMLElement>('.bp-Row-main')?.focus();
  }
}

function Empty({ scope }: { scope: Scope }): React.JSX.Element {
  return (
    <div className="bp-Empty" data-testid="benchpool-empty">
      <p>{scope === 'mine' ? 'No jobs yet.' : 'No visible jobs.'}</p>
      <p>
        Select cells of a notebook and press <kbd>{SEND_KEYS}</kbd>, or choose{' '}
        <em>Send to training…</em> in a script’s menu in the file browser.
      </p>
      <p>
        In Python: <code>benchpool.submit(&quot;train.py&quot;, gpus=2)</code>
        <br />
        In a terminal: <code>benchpool submit --gpus 2 train.py</code>
      </p>
    </div>
  );
}
