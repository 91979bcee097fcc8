/**
 * Texts about an idle bench and about reclaimed GPUs. Pure.
 *
 * Each sentence is a promise: the effect of a button, the losses, and the way to get a GPU again.
 */
import { count, duration, exactly } from './phrases';
import type { IBenchIdleness, IBenchNow, IGivenBack } from './tokens';

/** Steps at which the owner must answer. */
const ASKED: ReadonlySet<string> = new Set(['asked', 'due']);

/** Return whether the GPUs are reclaimed unless the owner answers. */
export function needsAnswer(bench: IBenchNow | null): boolean {
  const idle = bench?.idleness;
  return !!idle && !bench.given_back && idle.act !== 'none' && ASKED.has(idle.step);
}

/** Return whether the GPUs are being released now. */
export function isGoing(bench: IBenchNow | null): boolean {
  const command = bench?.idleness?.command ?? 'none';
  return command !== 'none' || bench?.given_back?.done === false;
}

/** Return the status bar text of the bench, or null. */
export function benchLine(bench: IBenchNow | null, now: number): string | null {
  if (bench?.given_back?.done) {
    return `no GPU: released at ${clock(bench.given_back.at)}`;
  }
  if (isGoing(bench)) {
    return 'releasing the GPU…';
  }
  const idle = bench?.idleness;
  if (!idle) {
    return null;
  }
  if (idle.kept_until !== null && Date.parse(idle.kept_until) > now) {
    return `kept until ${clock(idle.kept_until)}`;
  }
  if (needsAnswer(bench) && idle.acts_at !== null) {
    const does = idle.act === 'stop' ? 'server stops' : idle.parks ? 'lent' : 'reclaimed';
    return `${does} ${until(idle.acts_at, now)}`;
  }
  return null;
}

/** Return the heading of the dialog. */
export function dialogTitle(bench: IBenchNow): string {
  const gone = bench.given_back;
  if (gone) {
    return `${the(gone.gpus)} of this server ${wasWere(gone.gpus)} released`;
  }
  const idle = bench.idleness;
  if (idle && needsAnswer(bench)) {
    return `Your ${gpus(idle.gpus.length)} ${hasHave(idle.gpus.length)} been idle for ${duration(idle.idle_s)}`;
  }
  return `${the(idle?.gpus.length ?? 1)} of this server`;
}

/** Return the state of the bench and the next action without an answer. */
export function whatComes(idle: IBenchIdleness, now: number): string {
  const many = idle.gpus.length;
  if (idle.exempt_until !== null) {
    return `It is exempt from the rule for idle benches until ${day(idle.exempt_until)}.`;
  }
  if (idle.kept_until !== null && Date.parse(idle.kept_until) > now) {
    return `You keep it until ${clock(idle.kept_until)}.`;
  }
  if (idle.act === 'none') {
    return 'Idle benches are not reclaimed here.';
  }
  const given =
    idle.act === 'stop'
      ? `this server is stopped and its ${gpus(many)} ${isAre(many)} reclaimed`
      : `the ${gpus(many)} ${isAre(many)} reclaimed and this server continues without ${many === 1 ? 'it' : 'them'}`;
  const does = idle.parks
    ? 'the GPU is lent until you run a cell, and the kernel keeps its variables. ' +
      `If the kernel cannot be parked, ${given}`
    : given;
  if (idle.acts_at === null || !ASKED.has(idle.step)) {
    return `After ${exactly(idle.act_s)} without use ${does}.`;
  }
  return (
    'No kernel was busy, no cell was run, no program ran in a terminal, and nothing ran on the ' +
    `${many === 1 ? 'GPU' : 'GPUs'}. ${capital(until(idle.acts_at, now))} ` +
    `(${clock(idle.acts_at)}) ${does}. To keep it, run a cell.`
  );
}

/** Return the effect of *Keep*. */
export function whatKeepingDoes(idle: IBenchIdleness): string {
  if (idle.keeps_left <= 0) {
    return 'You have kept it the maximum number of times in 24 hours.';
  }
  return (
    `The bench is kept for ${exactly(idle.keep_s)}. ` +
    `You can do this ${count(idle.keeps_left, 'more time')} in 24 hours.`
  );
}

/** Return the effect and the losses of *Release the GPU*. */
export function whatGivingDoes(bench: IBenchNow): string {
  const busy =
    bench.busy_kernels > 0
      ? ` ${count(bench.busy_kernels, 'kernel')} ${bench.busy_kernels === 1 ? 'is' : 'are'} computing now: the result is lost.`
      : '';
  if (!bench.gives_up) {
    return (
      'This server is stopped. Its terminals and its kernels with their variables end. Files stay ' +
      `as last saved. Start the server again on the Hub’s page.${busy}`
    );
  }
  const kernels =
    bench.kernels === 0
      ? 'No kernel runs.'
      : `${count(bench.kernels, 'kernel')} ${bench.kernels === 1 ? 'is' : 'are'} restarted ` +
        `without GPU, and ${bench.kernels === 1 ? 'its' : 'their'} variables are lost.`;
  return (
    `${kernels} Idle terminals are closed. Files and open notebooks stay. ` + `${AGAIN}${busy}`
  );
}

const AGAIN = 'To get a GPU again, stop this server on the Hub’s page and start it with a GPU.';

/** Return the effect of *Send to training*. */
export function whatSendingDoes(notebook: string | null): string {
  return notebook === null
    ? 'Open a notebook first: its cells can run in the training pool.'
    : `Opens the form that sends cells of ${notebook} to the training pool. This bench stays as it is.`;
}

/** Return the short form of `whatHappened`, for a notification. */
export function inShort(gone: IGivenBack): string {
  const lost =
    gone.kernels === 0 ? '' : ' Kernels were restarted without it: variables are lost, files stay.';
  return `${the(gone.gpus)} ${wasWere(gone.gpus)} released at ${clock(gone.at)}.${lost}`;
}

/** Return the cause and effects of a reclaim that has happened. */
export function whatHappened(gone: IGivenBack): string {
  const why = gone.asked ? 'at your request' : `after ${duration(gone.idle_s)} without use`;
  const kernels =
    gone.kernels === 0
      ? ''
      : ` ${count(gone.kernels, 'kernel')} ${wasWere(gone.kernels)} restarted without GPU, not ` +
        `by an error: ${gone.kernels === 1 ? 'its' : 'their'} variables are lost.`;
  const note = gone.note === null ? '' : ` The note ${gone.note} in your folder has the details.`;
  return (
    `${the(gone.gpus)} of this server ${wasWere(gone.gpus)} released at ${clock(gone.at)}, ` +
    `${why}.${kernels} Files stay.${note} ${AGAIN}`
  );
}

function the(n: number): string {
  return n === 1 ? 'The GPU' : `The ${n} GPUs`;
}

function gpus(n: number): string {
  return n === 1 ? 'GPU' : `${n} GPUs`;
}

function wasWere(n: number): string {
  return n === 1 ? 'was' : 'were';
}

function isAre(n: number): string {
  return n === 1 ? 'is' : 'are';
}

function hasHave(n: number): string {
  return n === 1 ? 'has' : 'have';
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Return the duration until a time. */
function until(at: string, now: number): string {
  const seconds = (Date.parse(at) - now) / 1000;
  return seconds < 1 ? 'now' : `in ${duration(seconds)}`;
}

/** Return a time of day in the reader's time zone. */
function clock(at: string): string {
  const time = new Date(at);
  return `${String(time.getHours()).padStart(2, '0')}:${String(time.getMinutes()).padStart(2, '0')}`;
}

/** Return a date in the reader's time zone. */
function day(at: string): string {
  return new Date(at).toLocaleDateString(undefined, { month: 'long', day: 'numeric' });
}
