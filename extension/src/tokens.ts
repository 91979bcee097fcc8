/**
 * The public token, and the wire types under the names that the front end calls them.
 *
 * The wire types are generated from the OpenAPI documents of pool and server extension; field
 * names, units and meanings are those of the reference: times RFC 3339 with zone, durations in
 * seconds, sizes in bytes.
 */
import { Token } from '@lumino/coreutils';
import type { ISignal } from '@lumino/signaling';
import type * as Page from './generated/page';
import type * as Pool from './generated/pool';

/** The life of a job; the same eight words on every screen. */
export type JobState = Pool.State;

export type Numbers = Pool.ErrorBody['numbers'];
export type IReason = Pool.Reason;
export type IProgress = Pool.Progress;
export type IEstimatedStart = Pool.EstimatedStart;
export type IPreemption = Pool.Preemption;
export type IJob = Pool.Job;
export type IAttempt = Pool.Attempt;
export type ISubmission = Pool.JobSubmission;
export type IRunChange = Pool.RunChange;
export type IRunChanges = Pool.RunChanges;
/** A wish to belong to a project. */
export type IWish = Pool.AccessRequest;
export type IJobDetail = Pool.JobDetail;
export type IJobUsage = Pool.JobUsage;
export type IJobMetrics = Pool.JobMetrics;
export type ICurve = Pool.Curve;
export type ISweep = Pool.Sweep;
export type ITrialRow = Pool.TrialRow;
export type IProjectQuota = Pool.ProjectQuota;
export type IGpuUse = Pool.GpuUse;
/** What this notebook server knows of its bench. */
export type IBenchNow = Page.BenchNow;
export type IBenchIdleness = Page.BenchIdleness;
export type IGivenBack = Page.GivenBack;
export type IQuota = Pool.Quota;
export type IStatus = Pool.Status;
export type IPreview = Pool.Preview;

/** What an accepted job is to have from now on; what is left out stays as it is. */
export type IChangeRequest = {
  [Field in keyof Pool.JobChange]?: NonNullable<Pool.JobChange[Field]>;
};

/** A cell as it is sent; its runs are left out where none is known. */
type Known = 'runs' | 'left_out' | 'ticked' | 'metadata';
export type ILiveCell = Omit<Page.LiveCell, Known> & Partial<Pick<Page.LiveCell, Known>>;
export type ICellRun = Page.CellRun;
/**
 * What is asked when the dialog prepares a submission, and again, with a key, when it sends; what
 * is left out is as usual.
 */
export type ISendRequest = Pick<Page.SendRequest, 'kind' | 'path'> &
  Partial<Omit<Page.SendRequest, 'key' | 'cells'>> & { cells?: ILiveCell[] | null };
export type SendKind = ISendRequest['kind'];
export type IPreparedCell = Page.PreparedCell;
export type IProblem = Page.SaidProblem;
export type IRefusal = Page.Refusal;
export type IPreparation = Page.Preparation;
export type IOfferedParameter = Page.OfferedParameter;
/** Where the results of a job are, relative to the notebook server's root. */
export type IResult = Page.ResultFiles;

/** What a job was sent with. */
export type ISent = Page.SentJob;

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
