/**
 * Draft of a submission: the dialog answers as plain data, and their conversion to a request. Pure.
 * The dialog shows it, `sending.ts` sends it.
 */
import { splitArguments } from './argumentLine';
import { Bounded, BOUNDS, MAX_TIME_S, outOfBounds } from './bounds';
import { readSeconds } from './durations';
import { ranges } from './format';
import { type Typed, typedOf } from './parameters';
import { amountOf, faultsOf, keptVariables, variablesOf } from './variables';
import { faultOfKept, keptOf } from './keptNames';
import { sentOf } from './offeredValues';
import { faultOfRetries, IRetryDraft, keptRetries, retriesIn, retriesOf } from './retries';
import { type IScheduleDraft, noSchedule, scheduleOf } from './scheduleDraft';
import { faultsOfSweep, ISweepDraft, NO_SWEEP, singleOf, sweepOf } from './sweepDraft';
import { faultOfTags, splitTags } from './tags';
import type {
  ICellRun,
  ILiveCell,
  IPreparation,
  IPreparedCell,
  IProblem,
  ISendRequest,
  IStatus,
  SendKind
} from './tokens';

/** The file or notebook that the dialog was opened for. */
export interface ISubject {
  path: string;
  kernelName: string | null;
  /** ID of its running kernel, or null without a kernel and for a file. */
  kernelId: string | null;
  /** Execution counts of cells that were deleted from the notebook. */
  deletedRuns?: readonly number[];
  /** Live cells of an open notebook, or null for a file. */
  cells: readonly ILiveCell[] | null;
  /** Metadata of an open notebook. */
  metadata?: ISendRequest['metadata'];
}

export interface IDraft extends IRetryDraft {
  kind: SendKind;
  gpus: number;
  workers: number;
  project: string | null;
  name: string;
  args: string;
  timeLimit: string;
  priority: string;
  /** The only accepted GPU model, or an empty string for all models. */
  gpuModel: string;
  /** Place each worker on its own node if possible. */
  spread: boolean;
  /** Tags as typed, separated by blanks or commas. */
  tags: string;
  /** Variables, CPUs and memory in GiB as typed. An empty field has no effect. */
  env: string;
  cpus: string;
  memory: string;
  /** Ticked names whose values are sent, or null for the default choice (most time saved). */
  send: readonly string[] | null;
  /** Typed names whose values are returned. Empty: the names that the cells define. */
  keep: string;
  /** Whether values without a safe format are pickled. */
  pickle: boolean;
  /** Values of a sweep. */
  sweep: ISweepDraft;
  schedule: IScheduleDraft;
  /** IDs of jobs that this job runs after. `afterAny`: regardless of their result. */
  after: readonly string[];
  afterAny: boolean;
  /** Cells that the user ticked or unticked, by ID. */
  toggles: Readonly<Record<string, boolean>>;
  /** Parameters as typed. */
  parameters: Typed;
}

/** Answers remembered in the notebook metadata. */
export interface IMemory extends Partial<IRetryDraft> {
  kind?: SendKind;
  name?: string;
  gpus?: number;
  workers?: number;
  project?: string;
  args?: string;
  timeLimit?: string;
  priority?: string;
  gpuModel?: string;
  spread?: boolean;
  tags?: string;
  env?: string;
  cpus?: string;
  memory?: string;
  keep?: string;
  pickle?: boolean;
  parameters?: Typed;
}

/** Create a draft from remembered answers. Invalid parts are ignored. */
export function begin(kind: SendKind, memory: unknown): IDraft {
  const known = (memory && typeof memory === 'object' ? memory : {}) as Record<string, unknown>;
  return {
    kind,
    gpus: within('gpus', known.gpus),
    workers: within('workers', known.workers),
    project: typeof known.project === 'string' ? known.project : null,
    name: text(known.name),
    args: text(known.args),
    timeLimit: text(known.timeLimit),
    priority: text(known.priority),
    gpuModel: text(known.gpuModel),
    spread: known.spread === true,
    tags: text(known.tags),
    env: text(known.env),
    cpus: text(known.cpus),
    memory: text(known.memory),
    ...retriesIn(known),
    send: null,
    keep: text(known.keep),
    pickle: known.pickle === true,
    sweep: NO_SWEEP,
    schedule: noSchedule(),
    after: [],
    afterAny: false,
    toggles: {},
    parameters: typedOf(known.parameters)
  };
}

/** Return the answers to remember: the GPUs and all answers that are not the default. */
export function remember(draft: IDraft): IMemory {
  return {
    gpus: draft.gpus,
    ...(draft.workers > 1 ? { workers: draft.workers } : {}),
    ...(draft.project ? { project: draft.project } : {}),
    ...(draft.args ? { args: draft.args } : {}),
    ...(draft.timeLimit ? { timeLimit: draft.timeLimit } : {}),
    ...(draft.priority ? { priority: draft.priority } : {}),
    ...(draft.gpuModel ? { gpuModel: draft.gpuModel } : {}),
    ...(draft.spread ? { spread: true } : {}),
    ...(draft.tags ? { tags: draft.tags } : {}),
    ...(keptVariables(draft.env) ? { env: keptVariables(draft.env) } : {}),
    ...(draft.cpus ? { cpus: draft.cpus } : {}),
    ...(draft.memory ? { memory: draft.memory } : {}),
    ...keptRetries(draft),
    ...(draft.keep ? { keep: draft.keep } : {}),
    ...(draft.pickle ? { pickle: true } : {})
  };
}

function within(field: Bounded, value: unknown): number {
  const n = Number(value);
  return outOfBounds(field, n) === null ? n : BOUNDS[field].least;
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

export type Field =
  | 'gpus'
  | 'workers'
  | 'args'
  | 'timeLimit'
  | 'priority'
  | 'gpuModel'
  | 'spread'
  | 'tags'
  | 'env'
  | 'cpus'
  | 'memory'
  | 'retries'
  | 'retryOn'
  | 'ifHanging'
  | 'keep'
  | 'sweep'
  | 'after';

/** Return the faults of the answers by field, one sentence each. */
export function faults(draft: IDraft): Partial<Record<Field, string>> {
  const found: Partial<Record<Field, string>> = {};
  for (const field of ['gpus', 'workers'] as const) {
    const fault = outOfBounds(field, draft[field]);
    if (fault !== null) {
      found[field] = `${fault}.`;
    }
  }
  if (draft.kind === 'script' && splitArguments(draft.args) === null) {
    found.args = 'Arguments: a quote is not closed.';
  }
  if (parseDuration(draft.timeLimit) === undefined) {
    found.timeLimit =
      'Time limit: enter 90m, 2h, 1d12h or seconds, from 1 s to 366 d, or leave it empty.';
  }
  const priority = draft.priority === '' ? null : outOfBounds('priority', Number(draft.priority));
  if (priority !== null) {
    found.priority = `${priority}, or empty for the default of 50.`;
  }
  const tags = faultOfTags(splitTags(draft.tags));
  if (tags !== null) {
    found.tags = tags;
  }
  const retries = faultOfRetries(draft.retries);
  if (retries !== null) {
    found.retries = retries;
  }
  const keep = faultOfKept(draft.keep);
  if (keep !== null) {
    found.keep = keep;
  }
  const [sweep] = Object.values(faultsOfSweep(draft.sweep));
  if (sweep !== undefined) {
    found.sweep = sweep;
  }
  return { ...found, ...faultsOf(draft) };
}

/** Convert a draft without faults to a request. */
export function toRequest(subject: ISubject, draft: IDraft): ISendRequest {
  const parameters = draft.kind === 'script' ? {} : draft.parameters;
  return {
    kind: draft.kind,
    path: subject.path,
    cells: requestCells(subject, draft),
    ...(subject.metadata === undefined ? {} : { metadata: subject.metadata }),
    kernel_name: subject.kernelName,
    kernel_id: subject.kernelId,
    deleted_runs: (subject.deletedRuns ?? []).slice(-1000),
    args: draft.kind === 'script' ? (splitArguments(draft.args) ?? []) : [],
    gpus: draft.gpus,
    workers: draft.workers,
    project: draft.project,
    name: draft.name.trim() || null,
    time_limit_s: parseDuration(draft.timeLimit) ?? null,
    ...(draft.priority === '' ? {} : { priority: Number(draft.priority) }),
    gpu_models: draft.gpuModel === '' ? [] : [draft.gpuModel],
    spread: draft.spread && draft.workers > 1,
    tags: splitTags(draft.tags),
    env: variablesOf(draft.env) ?? {},
    parameters: singleOf(draft.sweep, parameters),
    cpus: amountOf('cpus', draft.cpus) ?? 0,
    memory_gib: amountOf('memory', draft.memory) ?? 0,
    ...retriesOf(draft),
    ...keptOf(draft),
    ...sweepOf(draft.sweep, parameters),
    ...scheduleOf(draft.schedule),
    ...sentOf(draft),
    ...(draft.after.length > 0 ? { after: [...draft.after], after_any: draft.afterAny } : {})
  };
}

/**
 * Return the cells to send, for a notebook in their current state. An unticked cell is marked
 * `left_out`, a cell that the user ticked `ticked`.
 */
function requestCells(subject: ISubject, draft: IDraft): ILiveCell[] | null {
  if (draft.kind === 'script' || subject.cells === null) {
    return null;
  }
  const isNotebook = draft.kind === 'notebook';
  return subject.cells.map(cell => {
    const choice = draft.toggles[cell.id];
    return choice === false
      ? { ...cell, left_out: true, selected: false }
      : {
          ...cell,
          selected: isNotebook || cell.selected,
          ticked: choice === true && !isNotebook && !cell.selected
        };
  });
}

/**
 * Return the available GPU models in alphabetical order. A former choice is included even if no
 * node has this model now.
 */
export function modelChoices(status: IStatus | null, chosen: string): string[] {
  const there = new Set((status?.gpus ?? []).map(gpu => gpu.model));
  return [...(chosen ? there.add(chosen) : there)].sort();
}

/** Return whether several nodes have GPUs, so that workers can be spread. */
export function hasNodes(status: IStatus | null): boolean {
  return new Set((status?.gpus ?? []).map(gpu => gpu.node)).size > 1;
}

/** Parse a time limit in seconds: null for an empty text, undefined for an invalid one. */
export function parseDuration(input: string): number | null | undefined {
  if (input.trim() === '') {
    return null;
  }
  const seconds = Math.round(readSeconds(input) ?? 0);
  return seconds >= 1 && seconds <= MAX_TIME_S ? seconds : undefined;
}

/** Cell as listed in the dialog, numbered from 1 as on the screen. */
export interface IListedCell {
  id: string;
  number: number;
  included: boolean;
  selected: boolean;
  why: string;
  firstLine: string;
  /** Last run that this page or the notebook recorded, or null. */
  lastRun: ICellRun | null;
  /** Names that would be missing without the cell, or an empty string. */
  without: string;
}

/** Return the code cells of the subject with the results of the preparation. */
export function listCells(
  subject: ISubject,
  draft: IDraft,
  prepared: IPreparation | null
): IListedCell[] {
  const known = new Map((prepared?.cells ?? []).map(cell => [cell.id, cell]));
  return (subject.cells ?? [])
    .map((cell, i) => ({ cell, number: i + 1 }))
    .filter(({ cell }) => cell.cell_type === 'code')
    .map(({ cell, number }) => {
      const answer = known.get(cell.id);
      const choice = draft.toggles[cell.id];
      const off = choice === false;
      const chosen = draft.kind === 'notebook' || cell.selected;
      const selected = chosen || (choice === true && (answer?.selected ?? true));
      return {
        id: cell.id,
        number,
        included: choice ?? answer?.included ?? selected,
        selected,
        why: off && answer?.included !== false ? 'left out by you' : (answer?.why ?? ''),
        without: (answer?.gives ?? []).map(missingLine).join(' '),
        firstLine: firstLine(cell.source),
        lastRun: cell.runs?.at(-1) ?? null
      };
    });
}

function missingLine(name: IPreparedCell['gives'][number]): string {
  return `Without it \`${name.name}\` is missing in ${plural('cell', name.to)}.`;
}

/** Return the IDs of the ticked cells, or null if the server selects the cells. */
export function tickedCells(
  subject: ISubject,
  draft: IDraft,
  prepared: IPreparation | null
): string[] | null {
  if (prepared === null || draft.kind !== 'cells' || subject.cells === null) {
    return null;
  }
  return listCells(subject, draft, prepared)
    .filter(cell => cell.included)
    .map(cell => cell.id);
}

function firstLine(source: string): string {
  return source.split('\n').find(line => line.trim() !== '') ?? '(empty)';
}

/** Return the cells as a sentence: `cells 1-2 (needed before), then 3-7`. */
export function cellsLine(cells: readonly IListedCell[]): string {
  const chosen = cells.filter(cell => cell.included && cell.selected).map(cell => cell.number);
  const needed = cells.filter(cell => cell.included && !cell.selected).map(cell => cell.number);
  if (chosen.length === 0) {
    return 'no cell with code is selected';
  }
  const then = `${needed.length ? 'then ' : ''}${plural('cell', chosen)}`;
  return needed.length ? `${plural('cell', needed)} (needed before), ${then}` : then;
}

function plural(noun: string, numbers: readonly number[]): string {
  return `${noun}${numbers.length === 1 ? '' : 's'} ${ranges(numbers)}`;
}

/** Sort problems: errors, warnings, infos. The order within a level stays. */
export function worstFirst(problems: readonly IProblem[]): IProblem[] {
  const levels: readonly IProblem['level'][] = ['error', 'warning', 'info'];
  return levels.flatMap(level => problems.filter(problem => problem.level === level));
}

/** Return a problem with its place, for example `cell 3, line 2: …`. */
export function problemLine(problem: IProblem, cells: readonly IListedCell[]): string {
  const number = cells.find(cell => cell.id === problem.cell)?.number ?? null;
  const place = [
    number === null ? '' : `cell ${number}`,
    problem.line === null ? '' : `line ${problem.line}`
  ].filter(part => part !== '');
  const isNamed = place.length > 0 && problem.text.toLowerCase().startsWith(place[0]!);
  return place.length === 0 || isNamed ? problem.text : `${place.join(', ')}: ${problem.text}`;
}
