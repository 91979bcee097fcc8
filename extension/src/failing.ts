/**
 * Where a job failed, as its reason says it, and what it was sent with as answers of the dialog.
 * Pure; `reopening.ts` opens it.
 */
import { joinArguments } from './argumentLine';
import type { IMemory, ISubject } from './draft';
import { writtenSeconds } from './durations';
import { typedAgain } from './parameters';
import { variablesLine } from './variables';
import type { IJob, ISent, ISubmission } from './tokens';

/** The place of a failure; a cell by its number on the screen when it was sent. */
export interface IFailedAt {
  cell: number | null;
  file: string | null;
  line: number | null;
  /** The words of the button that opens it. */
  label: string;
}

/** Where a job failed; null where it has not, or where that is not known. */
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

/** What is to be corrected, for a sentence: `cell 3` or `train.py, line 12`. */
export function toCorrect({ cell, file, line }: IFailedAt): string {
  const at = line === null ? '' : `, line ${line}`;
  return `${cell === null ? file : `cell ${cell}`}${at}`;
}

/** The answers of the dialog with which a job was sent. */
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

/** A notebook as it stands now, with the cells chosen that were chosen before. */
export function chosenAgain(subject: ISubject, sent: ISent): ISubject {
  const chosen = new Set(sent.selected);
  return {
    ...subject,
    cells: subject.cells?.map(cell => ({ ...cell, selected: chosen.has(cell.id) })) ?? null
  };
}

/** A cell as the notebook has it now; `count` is the number that the kernel gave it. */
interface IShownCell {
  id: string;
  source: string;
  count: number | null;
}

/** The magic that sends a cell stands in its first line, and did not go along. */
function belowTheMagic(source: string): string {
  return source.replace(/^(# )?%%(train|serve).*(\n|$)/, '');
}

/**
 * Where the cell that is meant stands now; -1 where it does not. Of cells that were sent by a magic
 * or as a function the kernel knew their texts and its own counts alone.
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
