/**
 * The public token and the wire types of the front end.
 *
 * The types say what the server extension answers; field names, units and meanings are those of
 * the reference: times RFC 3339 with zone, durations in seconds, sizes in bytes.
 */
import { Token } from '@lumino/coreutils';
import type { ISignal } from '@lumino/signaling';

export const STATES = [
  'queued',
  'starting',
  'running',
  'pausing',
  'paused',
  'succeeded',
  'failed',
  'cancelled'
] as const;

/** The life of a job; the same eight words on every screen. */
export type JobState = (typeof STATES)[number];

export type Numbers = Record<string, number | string | null>;

/** Why a job waits: a code of the closed list, a sentence, its numbers, the remedy. */
export interface IReason {
  code: string;
  text: string;
  numbers: Numbers;
  remedy: string;
}

export interface IProgress {
  fraction: number | null;
  text: string | null;
  updated: string;
}

/** A start as a range; a bound that is not known is null. */
export interface IEstimatedStart {
  earliest: string | null;
  likely: string | null;
  latest: string | null;
}

/** One pause for somebody else. */
export interface IPreemption {
  at: string;
  for: string;
  rule: string;
  lost_gpu_s: number;
  resumed_at: string | null;
}

export interface IJob {
  id: string;
  name: string;
  project: string;
  user: string;
  state: JobState;
  reason: IReason | null;
  gpus: number;
  workers: number;
  min_workers: number;
  priority: number;
  preemptible: boolean;
  over_quota: boolean;
  attempt: number;
  submitted: string;
  started: string | null;
  ended: string | null;
  exit_code: number | null;
  progress: IProgress | null;
  estimated_start: IEstimatedStart | null;
  preemptions: IPreemption[];
  url: string;
}

/** One start of a job. */
export interface IAttempt {
  attempt: number;
  started: string | null;
  ended: string | null;
  exit_code: number | null;
  ended_by: string | null;
  gpus: string[];
  nodes: string[];
}

/** Of what a job was sent with, the part that the front end reads. */
export interface ISubmission {
  min_workers: number | null;
}

export interface IJobDetail {
  job: IJob;
  attempts: IAttempt[];
}

export interface IProjectQuota {
  name: string;
  quota: number | null;
  fair_share: number;
  allocated: number;
  limit: number | null;
  waiting: number;
}

export interface IQuota {
  user: string;
  build: {
    quota: number;
    rule: string;
    held: { server: string; gpus: string[] }[];
    free: number;
  };
  projects: IProjectQuota[];
}

/** The part of the pool's status that the front end shows. */
export interface IStatus {
  text: string;
  simulated: boolean;
  gpus: { uuid: string; model: string; node: string }[];
  queue_length: number;
  running: number;
  health: { ok: boolean; problems: string[] };
}

/** What would happen if this were sent now. */
export interface IPreview {
  project: string;
  gpus: number;
  within_quota: number;
  over_quota: number;
  starts: 'now' | 'after-reclaim' | 'waits' | 'never';
  text: string;
  reason: IReason | null;
  estimated_start: IEstimatedStart | null;
  /** What the job finds on a cluster, also at the end of `text`; not on a workstation. */
  container?: { image: string | null; home: boolean; text: string } | null;
}

export type SendKind = 'cells' | 'notebook' | 'script';

/** A cell as the live notebook holds it. */
export interface ILiveCell {
  id: string;
  cell_type: string;
  source: string;
  execution_count: number | null;
  selected: boolean;
}

/** What is asked when the dialog prepares a submission, and again when it sends. */
export interface ISendRequest {
  kind: SendKind;
  path: string;
  cells: ILiveCell[] | null;
  kernel_name: string | null;
  args: string[];
  gpus: number;
  workers: number;
  project: string | null;
  name: string | null;
  time_limit_s: number | null;
  priority: number | null;
  gpu_models: string[];
  spread: boolean;
}

/** What an accepted job is to have from now on; what is left out stays as it is. */
export interface IChangeRequest {
  priority?: number;
  workers?: number;
}

export interface IPreparedCell {
  id: string;
  index: number;
  included: boolean;
  selected: boolean;
  why: string | null;
}

export interface IProblem {
  level: 'error' | 'warning';
  text: string;
  cell: string | number | null;
  line: number | null;
}

export interface IRefusal {
  code: string;
  message: string;
  field: string | null;
  numbers: Numbers;
}

/** What the dialog shows before sending. */
export interface IPreparation {
  name: string;
  cells: IPreparedCell[];
  problems: IProblem[];
  interpreter: string | null;
  working_dir: string | null;
  output_dir: string | null;
  files: { count: number; bytes: number; left_out: { path: string; why: string }[] } | null;
  command: string;
  preview: IPreview | null;
  refusal: IRefusal | null;
  quota: IQuota | null;
  checkpoint: { found: boolean; text: string } | null;
}

/** Where the results of a job are, relative to the notebook server's root. */
export interface IResult {
  notebook: string | null;
  output_dir: string | null;
  files: string[];
}

/** How the page stands with the scheduler. */
export interface IConnection {
  state: 'connecting' | 'live' | 'degraded';
  /** A sentence for the user; empty while live. */
  text: string;
}

/** A change of one job; `previous` is null for a job not known before. */
export interface IJobChange {
  job: IJob;
  previous: IJob | null;
}

/** The live list of jobs, for other extensions that want to show or follow them. */
export interface IBenchpool {
  readonly changed: ISignal<IBenchpool, void>;
  readonly jobChanged: ISignal<IBenchpool, IJobChange>;
  readonly jobs: readonly IJob[];
  readonly connection: IConnection;
  readonly quota: IQuota | null;
  readonly status: IStatus | null;
  job(id: string): IJob | null;
}

export const IBenchpool = new Token<IBenchpool>(
  '@benchpool/lab:IBenchpool',
  'The jobs of the training pool that this user may see, kept up to date by events.'
);
