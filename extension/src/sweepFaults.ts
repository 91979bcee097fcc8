/** Faults of a sweep or a schedule, with the field below which each is shown. Pure. */
import { faultsOfSweep, SWEEP_FIELDS, type SweepField } from './sweepDraft';
import type { Sending } from './sending';

type Refused = Pick<Sending, 'draft' | 'error' | 'preparation'>;

const WIRES: ReadonlySet<string> = new Set(Object.values(SWEEP_FIELDS));

/** Fields of a refusal that belong to the times of a schedule. */
const OF_TIMES: ReadonlySet<string> = new Set(['when', 'zone', 'every']);

/** Return the field of the last refusal without the prefix of a sweep, or an empty string. */
function refusedField({ error, preparation }: Refused): string {
  const field = (error ?? preparation?.refusal)?.field ?? '';
  return field.replace(/^sweep\./, '');
}

function refusal({
  error,
  preparation
}: Refused): { field: string | null; message: string } | null {
  return error ?? preparation?.refusal ?? null;
}

/** Return whether the values of a name are in the field of its parameter. */
function hasOwnField(sending: Refused, name: string): boolean {
  const { draft, preparation } = sending;
  const isListed = draft.sweep.names.some(one => one.name.trim() === name);
  return !isListed && (preparation?.parameters ?? []).some(one => one.name === name);
}

/** Return the fault of a parameter's field, or null. */
export function faultOfParameter(sending: Refused, name: string): string | null {
  const found = refusal(sending);
  const isOwn =
    found?.field === `parameters.${name}` ||
    (refusedField(sending) === name && isSweptName(sending, name) && hasOwnField(sending, name));
  return found !== null && isOwn ? found.message : null;
}

/** Return whether a refusal about a name is about its values: `sweep.NAME`, or a swept name. */
function isSweptName(sending: Refused, name: string): boolean {
  const field = refusal(sending)?.field;
  return field === `sweep.${name}` || name in (sending.preparation?.swept ?? {});
}

/** Return the fault of one answer of the sweep, or undefined. */
export function faultOfAnswer(sending: Refused, answer: SweepField): string | undefined {
  const found = refusal(sending);
  const wire = SWEEP_FIELDS[answer];
  const isOwn =
    [wire, `sweep.${wire}`, `plan.${wire}`].includes(found?.field ?? '') &&
    faultOfParameter(sending, wire) === null;
  return faultsOfSweep(sending.draft.sweep)[answer] ?? (isOwn ? found?.message : undefined);
}

/** Return the fault of the listed names and values, or undefined. */
export function faultOfNames(sending: Refused): string | undefined {
  const found = refusal(sending);
  const name = refusedField(sending);
  const isElsewhere = WIRES.has(name) || faultOfParameter(sending, name) !== null;
  const isOwn = (found?.field ?? '').startsWith('sweep.') || isSweptName(sending, name);
  return (
    faultsOfSweep(sending.draft.sweep).names ?? (isOwn && !isElsewhere ? found?.message : undefined)
  );
}

/** Return the fault of the times of a schedule, or undefined. */
export function faultOfTimes(sending: Refused): string | undefined {
  const found = refusal(sending);
  return OF_TIMES.has(found?.field ?? '') ? found?.message : undefined;
}

/** Return whether the last refusal is shown below a field, and not at the end of the dialog. */
export function isShownAtField(sending: Refused): boolean {
  const field = refusal(sending)?.field ?? '';
  const answers = Object.keys(SWEEP_FIELDS) as SweepField[];
  return (
    field === 'gpus' ||
    field.startsWith('parameters.') ||
    faultOfTimes(sending) !== undefined ||
    faultOfNames(sending) !== undefined ||
    faultOfParameter(sending, refusedField(sending)) !== null ||
    answers.some(answer => faultOfAnswer(sending, answer) !== undefined)
  );
}
