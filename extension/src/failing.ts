/**
 * Place of a failure from its reason, and the submission as dialog answers. Pure. `reopening.ts`
 * opens the place.
 */
import { joinArguments } from './argumentLine';
import type { IMemory, ISubject } from './draft';
import { writtenSeconds } from './durations';
import { typedAgain } from './parameters';
import { variablesLine } from './variables';
import type { IJob, ISent, ISubmission } from './tokens';

/** Place of a failure. A cell has its number on the screen at submission. */
export interface IFailedAt {
  cell: number | null;
  file: string | null;
  line: number | null;
  /** Label of the button that opens the place. */
  label: string;
}

/**
 * Return the place of the failure of a job, or null if it has not failed or the place is unknown.
 */
export function failedAt(job: IJob): IFailedAt | null {
  const numbers = job.state === 'failed' ? job.reason?.numbers : undefined;
  const cell = typeof numbers?.cell === 'number' ? numbers.cell : null;
  const file = typeof numbers?.file === 'string' ? numbers.file : null;
  const line = typeof numbers?.line === 'number' ? numbers.line : null;
  if (cell === null && file === null) {
    return null;
  }
  const label = cell === null ? `Open ${file} at line ${line}` : 'Open at the cell';
  return { cell, file, line, label };
}

/** Return the place for use in a sentence: `cell 3` or `train.py, line 12`. */
export function toCorrect({ cell, file, line }: IFailedAt): string {
  const at = line === null ? '' : `, line ${line}`;
  return `${cell === null ? file : `cell ${cell}`}${at}`;
}

/** Return the dialog answers of a submission. */
export function memoryOf(submission: ISubmission): IMemory {
  const { entry } = submission;
  const [model] = submission.gpu_models ?? [];
  return {
    gpus: submission.gpus ?? 1,
    workers: submission.workers ?? 1,
    ...(submission.name ? { name: submission.name } : {}),
    ...(submission.project ? { project: submission.project } : {}),
    ...(entry.kind === 'script' ? { args: joinArguments(entry.args ?? []) } : {}),
    ...(submission.time_limit_s ? { timeLimit: writtenSeconds(submission.time_limit_s) } : {}),
    ...(submission.priority === undefined ? {} : { priority: String(submission.priority) }),
    ...(model ? { gpuModel: model } : {}),
    ...(submission.spread ? { spread: true } : {}),
    tags: (submission.tags ?? []).join(' '),
    env: variablesLine(submission.env ?? {}),
    ...(submission.parameters ? { parameters: typedAgain(submission.parameters) } : {}),
    ...(submission.cpus ? { cpus: String(submission.cpus) } : {}),
    ...(submission.memory_gib ? { memory: String(submission.memory_gib) } : {}),
    ...(typeof submission.retries === 'number' ? { retries: String(submission.retries) } : {}),
    ...(submission.retry_on?.length ? { retryOn: submission.retry_on.join(' ') } : {})
  };
}

/** Return the current notebook with the formerly selected cells selected. */
export function chosenAgain(subject: ISubject, sent: ISent): ISubject {
  const chosen = new Set(sent.selected);
  return {
    ...subject,
    cells: subject.cells?.map(cell => ({ ...cell, selected: chosen.has(cell.id) })) ?? null
  };
}

/** Cell of the current notebook. `count` is its execution count in the kernel. */
interface IShownCell {
  id: string;
  source: string;
  count: number | null;
}

/** Remove the first line with the send magic, which was not part of the submission. */
function belowTheMagic(source: string): string {
  return source.replace(/^(# )?%%(train|serve).*(\n|$)/, '');
}

/**
 * Return the current index of cell `sent.cell`, or -1. For cells sent by a magic or function, the
 * kernel recorded only texts and execution counts.
 */
export function placeOf(sent: Pick<ISent, 'cell' | 'cells'>, shown: readonly IShownCell[]): number {
  const byId = shown.findIndex(cell => cell.id === sent.cell);
  const meant = sent.cells.find(cell => cell.id === sent.cell);
  if (byId >= 0 || !meant) {
    return byId;
  }
  const text = belowTheMagic(meant.source).trim();
  const same = shown.flatMap((cell, at) =>
    belowTheMagic(cell.source).trim() === text ? [at] : []
  );
  return same.find(at => shown[at]!.count === meant.number) ?? same[0] ?? -1;
}
