/**
 * Public token and wire types under the names of the front end.
 *
 * The wire types are generated from the OpenAPI documents of the pool and the server extension.
 * Field names, units and meanings are those of the reference: times in RFC 3339 with zone,
 * durations in seconds, sizes in bytes.
 */
import { Token } from '@lumino/coreutils';
import type { ISignal } from '@lumino/signaling';
import type * as Page from './generated/page';
import type * as Pool from './generated/pool';

/** State of a job. All screens use the same eight words. */
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
/** Access request for a project. */
export type IAccessRequest = Pool.AccessRequest;
export type IJobDetail = Pool.JobDetail;
export type IJobUsage = Pool.JobUsage;
export type IJobMetrics = Pool.JobMetrics;
export type ICurve = Pool.Curve;
export type ISweep = Pool.Sweep;
export type ISchedule = Pool.Schedule;
/** What a submission creates. */
export type IAccepted = IJob | ISchedule;
export type ITrialRow = Pool.TrialRow;
export type IProjectQuota = Pool.ProjectQuota;
export type IGpuUse = Pool.GpuUse;
/** State of the bench of this notebook server. */
export type IBenchNow = Page.BenchNow;
export type IBenchIdleness = Page.BenchIdleness;
export type IGivenBack = Page.GivenBack;
export type IQuota = Pool.Quota;
export type IStatus = Pool.Status;
export type IPreview = Pool.Preview;

/** Changes of an accepted job. Omitted fields stay unchanged. */
export type IChangeRequest = {
  [Field in keyof Pool.JobChange]?: NonNullable<Pool.JobChange[Field]>;
};

/** Optional fields of a sent cell. */
type Known = 'runs' | 'left_out' | 'ticked' | 'metadata';
export type ILiveCell = Omit<Page.LiveCell, Known> & Partial<Pick<Page.LiveCell, Known>>;
export type ICellRun = Page.CellRun;
/** Request of a preparation, and with a key of a submission. Omitted fields have their default. */
export type ISendRequest = Pick<Page.SendRequest, 'kind' | 'path'> &
  Partial<Omit<Page.SendRequest, 'key' | 'cells'>> & { cells?: ILiveCell[] | null };
export type SendKind = ISendRequest['kind'];
export type IPreparedCell = Page.PreparedCell;
export type IProblem = Page.ReportedProblem;
export type IRefusal = Page.Refusal;
export type IPreparation = Page.Preparation;
export type IOfferedParameter = Page.OfferedParameter;
/** Place of the results of a job, relative to the root of the notebook server. */
export type IResult = Page.ResultFiles;

/** Submission of a job with its code. */
export type ISent = Page.SentJob;

/** State of the connection to the scheduler. */
export interface IConnection {
  state: 'connecting' | 'live' | 'degraded';
  /** Sentence for the user, or an empty string while live. */
  text: string;
}

/** Change of a job. `previous` is null for a new job. */
export interface IJobChange {
  job: IJob;
  previous: IJob | null;
}

/** Live list of jobs, for use by other extensions. */
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
