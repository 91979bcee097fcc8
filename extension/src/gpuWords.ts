/** Status bar texts about the GPUs of this bench. Pure. */
import { count, duration, percent } from './phrases';
import type { IBenchNow, IGpuUse } from './tokens';

const SHOWN_ALONE = 2;
const MINUTE_S = 60;

/** Return the user's GPUs of one notebook server, in the order of their device numbers. */
export function ofServer(gpus: readonly IGpuUse[], server: string): readonly IGpuUse[] {
  return gpus.filter(gpu => gpu.mine && gpu.server === server);
}

/** Return the text of the item: few GPUs singly, else a sum. */
export function chipText(
  gpus: readonly IGpuUse[],
  now: number,
  bench: IBenchNow | null = null
): string {
  const lines =
    gpus.length <= SHOWN_ALONE
      ? gpus.map((gpu, index) => parts(`GPU ${index}`, [gpu], now))
      : [parts(count(gpus.length, 'GPU'), gpus, now)];
  const working = idleOf(gpus, now) === null ? null : workingOf(bench);
  return [lines.join(' | '), working].filter(part => part !== null).join(' · ');
}

/** Return the activity on a bench whose GPUs are idle, or null. */
export function workingOf(bench: IBenchNow | null): string | null {
  const kernels = bench?.busy_kernels ?? 0;
  const programs = bench?.terminal_programs ?? 0;
  if (kernels > 0) {
    return kernels === 1 ? 'a kernel computes' : `${kernels} kernels compute`;
  }
  if (programs > 0) {
    return programs === 1
      ? 'a program runs in a terminal'
      : `${programs} programs run in terminals`;
  }
  return null;
}

/** Return the detailed text of the item. */
export function chipTitle(gpus: readonly IGpuUse[]): string {
  const simulated = gpus.some(gpu => gpu.simulated);
  const sentences = [
    'Share of the last 10 seconds or so in which your GPU computed, memory in use, and idle time.'
  ];
  if (simulated) {
    sentences.push('These GPUs are simulated: the share is the processor use of your processes.');
  }
  const slow = gpus.flatMap(gpu => gpu.throttled ?? []);
  if (slow.length > 0) {
    sentences.push(`The GPU is throttled: ${[...new Set(slow)].join(', ')}.`);
  }
  return sentences.join(' ');
}

function parts(name: string, gpus: readonly IGpuUse[], now: number): string {
  const measured = gpus.filter(gpu => gpu.at !== null);
  if (measured.length < gpus.length || gpus.length === 0) {
    return `${name}: not measured now`;
  }
  const found = [shareOf(gpus), memoryOf(gpus), idleOf(gpus, now)];
  if (gpus.some(gpu => gpu.simulated)) {
    found.push('simulated');
  }
  const parts = found.filter(part => part !== null);
  return `${name}: ${parts.length > 0 ? parts.join(' · ') : 'not measured'}`;
}

function shareOf(gpus: readonly IGpuUse[]): string | null {
  const shares = gpus.flatMap(gpu => (typeof gpu.activity === 'number' ? [gpu.activity] : []));
  return shares.length === gpus.length ? percent(sum(shares) / shares.length) : null;
}

function memoryOf(gpus: readonly IGpuUse[]): string | null {
  const used = gpus.flatMap(gpu => gpu.memory_used_gib ?? []);
  const total = gpus.flatMap(gpu => gpu.memory_total_gib ?? []);
  if (used.length < gpus.length || total.length < gpus.length) {
    return null;
  }
  return `${Math.round(sum(used))}/${Math.round(sum(total))} GB`;
}

/** Return how long all GPUs have been idle, or null below a minute or if a GPU is active. */
function idleOf(gpus: readonly IGpuUse[], now: number): string | null {
  const since = gpus.flatMap(gpu => gpu.idle_since ?? []).map(Date.parse);
  if (since.length < gpus.length) {
    return null;
  }
  const seconds = (now - Math.max(...since)) / 1000;
  return seconds < MINUTE_S ? null : `idle ${duration(seconds)}`;
}

function sum(values: readonly number[]): number {
  return values.reduce((all, value) => all + value, 0);
}
