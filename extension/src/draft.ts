/**
 * What a user is about to send: the answers of the dialog as plain data, and how they become a
 * request. Pure; the dialog draws it, `sending.ts` carries it out.
 */
import { splitArguments } from './argumentLine';
import { Bounded, BOUNDS, MAX_TIME_S, outOfBounds, TAGS } from './bounds';
import { readSeconds } from './durations';
import { ranges } from './format';
import { given, type Typed, typedOf } from './parameters';
import { amountOf, faultsOf, keptVariables, variablesOf } from './variables';
import { faultOfKept, keptOf } from './keptNames';
import { sentOf } from './offeredValues';
import { faultOfRetries, IRetryDraft, keptRetries, retriesIn, retriesOf } from './retries';
import { faultOfSweep, ISweepDraft, NO_SWEEP, sweepOf } from './sweepDraft';
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

/** The thing a dialog was opened on. */
export interface ISubject {
  path: string;
  kernelName: string | null;
  /** The kernel that runs for it; null for none, and for a file. */
  kernelId: string | null;
  /** Execution counts of cells that are no longer in the notebook. */
  deletedRuns?: readonly number[];
  /** Live cells of an open notebook; null for a file. */
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
  /** The one model that will do; empty for any. */
  gpuModel: string;
  /** Each worker wants a node of its own, where that is possible. */
  spread: boolean;
  /** Labels to find it by, as they are typed: parted by blanks or commas. */
  tags: string;
  /** Variables as they are typed, processors, and memory in GiB; empty for none of one's own. */
  env: string;
  cpus: string;
  memory: string;
  /** Names whose values go along, as ticked; null for those that save most time. */
  send: readonly string[] | null;
  /** Names whose values come back, as they are typed; empty for those that the cells define. */
  keep: string;
  /** What of them has no safe format is pickled. */
  pickle: boolean;
  /** The same with many values. */
  sweep: ISweepDraft;
  /** Jobs that it is to run after, by id; `afterAny`: however they end. */
  after: readonly string[];
  afterAny: boolean;
  /** Cells whose inclusion the user has chosen by hand. */
  toggles: Readonly<Record<string, boolean>>;
  /** Parameters as they were typed. */
  parameters: Typed;
}

/** Answers kept for the next time, in the metadata of the notebook. */
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

/** A draft from what was answered last time; anything unusable in it is ignored. */
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
    after: [],
    afterAny: false,
    toggles: {},
    parameters: typedOf(known.parameters)
  };
}

/** The answers to keep; those left at their default are left out. */
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

/** Faults of the answers themselves, by field; each a sentence. */
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
      'Time limit: give it as 90m, 2h or 1d12h, or in seconds; at least 1 s and at most 366 d, or leave it empty.';
  }
  const priority = draft.priority === '' ? null : outOfBounds('priority', Number(draft.priority));
  if (priority !== null) {
    found.priority = `${priority}, or empty for the usual 50.`;
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
  const sweep = faultOfSweep(draft.sweep);
  if (sweep !== null) {
    found.sweep = sweep;
  }
  return { ...found, ...faultsOf(draft) };
}

/** The request of a draft without faults. */
export function toRequest(subject: ISubject, draft: IDraft): ISendRequest {
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
    parameters: draft.kind === 'script' ? {} : given(draft.parameters),
    cpus: amountOf('cpus', draft.cpus) ?? 0,
    memory_gib: amountOf('memory', draft.memory) ?? 0,
    ...retriesOf(draft),
    ...keptOf(draft),
    ...sweepOf(draft.sweep),
    ...sentOf(draft),
    ...(draft.after.length > 0 ? { after: [...draft.after], after_any: draft.afterAny } : {})
  };
}

/**
 * Cells as they are sent: a cell switched off by hand is left out, one switched on counts as selected; the whole notebook is sent as it stands on the screen.
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
 * The GPU models that can be chosen, in alphabetical order; with the one that was chosen before,
 * also when no machine has it any more.
 */
export function modelChoices(status: IStatus | null, chosen: string): string[] {
  const there = new Set((status?.gpus ?? []).map(gpu => gpu.model));
  return [...(chosen ? there.add(chosen) : there)].sort();
}

/** Whether there are several nodes with GPUs to spread workers over. */
export function hasNodes(status: IStatus | null): boolean {
  return new Set((status?.gpus ?? []).map(gpu => gpu.node)).size > 1;
}

/** Tags as they were typed, each once, in their order. */
export function splitTags(line: string): string[] {
  return [...new Set(line.split(/[\s,]+/).filter(tag => tag !== ''))];
}

function faultOfTags(tags: readonly string[]): string | null {
  const long = tags.find(tag => [...tag].length > TAGS.longest);
  if (long !== undefined) {
    return `Tags: “${long.slice(0, 20)}…” has ${[...long].length} characters, at most ${TAGS.longest} are allowed.`;
  }
  return tags.length > TAGS.most ? `Tags: ${tags.length} are given, at most ${TAGS.most}.` : null;
}

/** Seconds of a time limit; null for none, undefined for text that is no duration. */
export function parseDuration(input: string): number | null | undefined {
  if (input.trim() === '') {
    return null;
  }
  const seconds = Math.round(readSeconds(input) ?? 0);
  return seconds >= 1 && seconds <= MAX_TIME_S ? seconds : undefined;
}

/** A cell as the dialog lists it, numbered as on the screen from 1. */
export interface IListedCell {
  id: string;
  number: number;
  included: boolean;
  selected: boolean;
  why: string;
  firstLine: string;
  /** How it last went, as far as this page saw it. */
  lastRun: ICellRun | null;
  /** What would be missing without it; empty for nothing. */
  without: string;
}

/** Code cells of the subject with what the server said about each. */
export function listCells(
  subject: ISubject,
  draft: IDraft,
  prepared: IPreparation | null
): IListedCell[] {
  const told = new Map((prepared?.cells ?? []).map(cell => [cell.id, cell]));
  return (subject.cells ?? [])
    .map((cell, i) => ({ cell, number: i + 1 }))
    .filter(({ cell }) => cell.cell_type === 'code')
    .map(({ cell, number }) => {
      const answer = told.get(cell.id);
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

/** The cells that the user sees ticked; null where the server shall choose anew. */
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

/** The cells as a sentence: `cells 1-2 (needed before), then 3-7`. */
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

/** Errors, then warnings, then what is only said; each in the order it came. */
export function worstFirst(problems: readonly IProblem[]): IProblem[] {
  const levels: readonly IProblem['level'][] = ['error', 'warning', 'info'];
  return levels.flatMap(level => problems.filter(problem => problem.level === level));
}

/** A problem with the place it is about in words, e.g. `cell 3, line 2: …`. */
export function problemLine(problem: IProblem, cells: readonly IListedCell[]): string {
  const number = cells.find(cell => cell.id === problem.cell)?.number ?? null;
  const place = [
    number === null ? '' : `cell ${number}`,
    problem.line === null ? '' : `line ${problem.line}`
  ].filter(part => part !== '');
  const said = place.length > 0 && problem.text.toLowerCase().startsWith(place[0]!);
  return place.length === 0 || said ? problem.text : `${place.join(', ')}: ${problem.text}`;
}
