"""``Project``, ``NodePool`` and ``PoolSettings``: the content of ``benchpool.yaml`` as objects."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar, Literal

from msgspec import Meta, Struct

from benchpool_scheduler.resources.declaring import (
    Amount,
    Condition,
    Gpus,
    Name100,
    Person,
    PrinterColumn,
    Resource,
    Rule,
    Seconds,
    kind,
)
from benchpool_scheduler.resources.gpu_hours import HourBudgetSpec, UserHoursSpec
from benchpool_scheduler.resources.idle_benches import IdleRuleSpec
from benchpool_scheduler.resources.policy import PolicySpec
from benchpool_scheduler.resources.reservations import ReservationSpec
from benchpool_scheduler.resources.retries import HangRuleSpec, RetryRulesSpec

People = Annotated[list[Person], Meta(max_length=1000)]
Days = Annotated[float, Meta(ge=0, le=36_500)]

_QUOTA = "type(self.quota) == int ? self.quota >= 0 : self.quota == 'unlimited'"


class BoundSpec(
    Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True
):
    """Quota, limit and weight of one resource. A missing value is no limit."""

    quota: Amount | None = None
    limit: Amount | None = None
    weight: Amount | None = None


class PersonalSpec(
    Struct,
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    rename={"gpu_hours": "gpuHours"},
):
    """Settings of the personal project of each member."""

    show_defaults: ClassVar[bool] = True
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            f"!has(self.quota) || ({_QUOTA})",
            "quota is a number of GPUs from 0, or `unlimited`.",
            field=".quota",
        ),
    )

    quota: Annotated[
        int | str, Meta(description="GPUs guaranteed at any time, or `unlimited` (R4).")
    ] = 0
    limit: Annotated[Gpus | None, Meta(description="Maximum number of GPUs (R8).")] = None
    weight: Annotated[Amount, Meta(description="Share of the surplus (R5).")] = 1
    gpu_hours: HourBudgetSpec | None = None


class ProjectSpec(
    Struct,
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    rename={
        "memory_gib": "memoryGib",
        "min_runtime_s": "minRuntimeSeconds",
        "gpu_hours": "gpuHours",
        "personal_projects": "personalProjects",
    },
):
    """Queue of the pool for a person, a team or an activity. Projects form a tree."""

    show_defaults: ClassVar[bool] = True
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            f"!has(self.quota) || ({_QUOTA})",
            "quota is a number of GPUs from 0, or `unlimited`.",
            field=".quota",
        ),
        Rule(
            "[self.?members.orValue([]), self.?leads.orValue([])].all(list, list.all(one, "
            "!one.contains(':') || one.matches('^group:.+$')))",
            "Members and leads are names of users, or `group:NAME` for a group.",
        ),
    )

    name: Annotated[
        Name100 | None, Meta(description="Name shown to users; by default metadata.name.")
    ] = None
    parent: Annotated[Name100 | None, Meta(description="Parent project.")] = None
    quota: Annotated[
        int | str | None,
        Meta(
            description="GPUs guaranteed at any time, or `unlimited`; by default 0, or the sum "
            "of the projects below it (R4)."
        ),
    ] = None
    limit: Annotated[Gpus | None, Meta(description="Maximum number of GPUs (R8).")] = None
    weight: Annotated[
        Amount | None, Meta(description="Share of the surplus; by default the quota (R5).")
    ] = None
    priority: Annotated[
        int, Meta(ge=-1_000_000, le=1_000_000, description="Surplus order (R5), higher first.")
    ] = 0
    personal_projects: Annotated[
        PersonalSpec | None,
        Meta(description="Personal project of each member below it, with these settings."),
    ] = None
    each: Annotated[PersonalSpec | None, Meta(description="Former name of `personalProjects`.")] = (
        None
    )
    cpus: BoundSpec | None = None
    memory_gib: BoundSpec | None = None
    min_runtime_s: Annotated[
        Seconds | None, Meta(description="Protection of jobs after a start (R19).")
    ] = None
    members: Annotated[
        People,
        Meta(description="Users, groups as `group:NAME`, `*` for users without another project."),
    ] = []
    leads: Annotated[People, Meta(description="Users and groups that lead the project.")] = []
    gpu_hours: HourBudgetSpec | None = None
    order: Annotated[
        int,
        Meta(ge=0, le=1_000_000, description="Age rank among projects; smallest is the oldest."),
    ] = 1_000_000


class PastUse(Struct, frozen=True, omit_defaults=True, rename={"gpu_s": "gpuSeconds"}):
    """Decayed past use above quota (R7), of one user, or of the project if no user is named."""

    gpu_s: float
    at: datetime
    user: Person | None = None


class ProjectStatus(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Current state of the project."""

    fair_share: Annotated[int | None, Meta(description="Fair share in GPUs now (R4, R5).")] = None
    allocated: Annotated[int | None, Meta(description="GPUs held by its jobs.")] = None
    waiting: Annotated[int | None, Meta(description="Number of waiting jobs.")] = None
    past_use: Annotated[tuple[PastUse, ...], Meta(max_length=10_000)] = ()
    conditions: Annotated[tuple[Condition, ...], Meta(max_length=8)] = ()
    epoch: Annotated[int, Meta(ge=0)] = 0


PROJECTS = Resource(
    kind=kind("projects", "Project", namespaced=False),
    spec=ProjectSpec,
    status=ProjectStatus,
    words=("bproj",),
    text="A queue of the pool with a guaranteed quota of GPUs.",
    columns=(
        PrinterColumn("Parent", ".spec.parent"),
        PrinterColumn("Quota", ".spec.quota"),
        PrinterColumn("Limit", ".spec.limit", "integer"),
        PrinterColumn("Share", ".status.fairShare", "integer", text="Fair share in GPUs now"),
        PrinterColumn("Holds", ".status.allocated", "integer", text="GPUs held by its jobs"),
        PrinterColumn("Waiting", ".status.waiting", "integer", text="Number of waiting jobs"),
        PrinterColumn("Weight", ".spec.weight", "number", wide=True),
        PrinterColumn("Priority", ".spec.priority", "integer", wide=True),
        PrinterColumn("Age", ".metadata.creationTimestamp", "date"),
    ),
    rules=(
        Rule(
            "!has(self.spec.parent) || self.spec.parent != "
            "(has(self.spec.name) ? self.spec.name : self.metadata.name)",
            "A project cannot be its own parent. Name another one, or none.",
            field=".spec.parent",
        ),
    ),
)


class NodePoolSpec(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Set of nodes chosen by labels, and their purpose."""

    nodes: Annotated[
        dict[str, Annotated[str, Meta(max_length=63)]],
        Meta(max_length=32, description="Labels that a node must have; none means every node."),
    ] = {}
    purpose: Annotated[
        list[Literal["build", "train"]],
        Meta(
            max_length=2,
            description="Purpose of the nodes; empty means both.",
            extra_json_schema={"x-kubernetes-list-type": "set"},
        ),
    ] = []
    serves: Annotated[
        list[Literal["build", "train"]],
        Meta(
            max_length=2,
            description="Former name of `purpose`.",
            extra_json_schema={"x-kubernetes-list-type": "set"},
        ),
    ] = []
    order: Annotated[
        int, Meta(ge=0, le=1_000_000, description="Rank; a node is in the first matching pool.")
    ] = 1_000_000


class NodePoolStatus(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Numbers of nodes and GPUs of the pool."""

    nodes: int | None = None
    gpus: int | None = None
    free: int | None = None
    conditions: Annotated[tuple[Condition, ...], Meta(max_length=8)] = ()
    epoch: Annotated[int, Meta(ge=0)] = 0


NODE_POOLS = Resource(
    kind=kind("nodepools", "NodePool", namespaced=False),
    spec=NodePoolSpec,
    status=NodePoolStatus,
    words=("bpool",),
    text="Nodes with GPUs, chosen by labels, that serve benches, training or both.",
    columns=(
        PrinterColumn("Purpose", ".spec.purpose"),
        PrinterColumn("Serves", ".spec.serves", wide=True, text="Former name of purpose"),
        PrinterColumn("Nodes", ".status.nodes", "integer"),
        PrinterColumn("GPUs", ".status.gpus", "integer"),
        PrinterColumn("Free", ".status.free", "integer"),
        PrinterColumn("Age", ".metadata.creationTimestamp", "date"),
    ),
)


class BuildSpec(
    Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True
):
    """Build quotas of users (R2), and the GPUs set aside for them (R3)."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "!has(self.reserve) || (type(self.reserve) == int ? self.reserve >= 0 "
            ": self.reserve == 'auto')",
            "reserve is a number of GPUs from 0, or `auto`.",
            field=".reserve",
        ),
    )

    default: Annotated[Gpus, Meta(description="Build quota of users without another entry.")] = 0
    groups: Annotated[dict[str, Gpus], Meta(max_length=10_000)] = {}
    users: Annotated[dict[str, Gpus], Meta(max_length=10_000)] = {}
    reserve: Annotated[
        int | str, Meta(description="GPUs kept for benches; `auto` is the sum over all users.")
    ] = "auto"
    oversubscribe: bool = False
    lend_idle: bool = False


Budget = Annotated[int, Meta(ge=1, le=1_000_000)]


class BudgetsSpec(
    Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, rename="camel"
):
    """Limits of one user. A missing value has benchpool's default."""

    jobs: Budget | None = None
    submissions_mib: Budget | None = None
    uploads_gib: Budget | None = None
    stored_gib: Budget | None = None
    values_gib: Budget | None = None
    streams: Budget | None = None
    home_gib: Budget | None = None
    results_gib: Budget | None = None
    checkpoints_gib: Budget | None = None


class RetentionSpec(
    Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True
):
    """Retention times and limits. A missing value has benchpool's default."""

    ended_days: Days | None = None
    ended_jobs: Annotated[int, Meta(ge=0, le=10_000_000)] | None = None
    uploads_days: Days | None = None
    checkpoints_days: Days | None = None
    results_days: Days | None = None
    logs_days: Days | None = None
    use_days: Days | None = None
    audit_days: Days | None = None


class PricesSpec(
    Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True
):
    """Prices of a GPU-hour for its holder, for reports."""

    currency: Annotated[str, Meta(max_length=16, description="Currency, such as EUR.")] = ""
    gpu_hour: Annotated[
        dict[str, Annotated[float, Meta(ge=0, le=1e6)]],
        Meta(description="Price of a GPU-hour by GPU model; other models cost nothing."),
    ] = {}


class PoolSettingsSpec(
    Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, rename="camel"
):
    """Sections of ``benchpool.yaml`` other than projects and pools."""

    build: BuildSpec | None = None
    policy: PolicySpec | None = None
    budgets: BudgetsSpec | None = None
    topology: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=253)]],
        Meta(
            max_length=8,
            description="Node labels that state how close machines are, widest first (R12).",
        ),
    ] = []
    retention: RetentionSpec | None = None
    prices: PricesSpec | None = None
    gpu_hours: UserHoursSpec | None = None
    idle_benches: IdleRuleSpec | None = None
    retries: RetryRulesSpec | None = None
    hanging: HangRuleSpec | None = None
    reservations: Annotated[list[ReservationSpec], Meta(max_length=1000)] = []


class StartCalibration(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Accuracy of estimated starts (R22), for one horizon and one basis of estimates."""

    kind: Annotated[str, Meta(max_length=32)]
    horizon: Annotated[int, Meta(ge=0, le=16)]
    low: Annotated[float, Meta(ge=-100, le=100)]
    high: Annotated[float, Meta(ge=-100, le=100)]
    outcomes: Annotated[str, Meta(max_length=1000)]


class ClosedNodeWindow(Struct, frozen=True, rename="camel"):
    """Maintenance window. Nothing starts on the node during it."""

    begins: datetime
    ends: datetime
    reason: Annotated[str, Meta(max_length=200)]
    by: Person


class ClosedNode(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Administrators' settings of a node: its drain with time and reason, its window, its note."""

    name: Annotated[str, Meta(max_length=253)]
    note: Annotated[str, Meta(max_length=500)] = ""
    drained: datetime | None = None
    reason: Annotated[str, Meta(max_length=200)] = ""
    by: Annotated[str, Meta(max_length=255)] = ""
    window: ClosedNodeWindow | None = None


class PoolSettingsStatus(Struct, frozen=True, rename="camel", omit_defaults=True):
    """State of all settings. The condition ``InForce`` has the reason if they are not."""

    conditions: Annotated[tuple[Condition, ...], Meta(max_length=8)] = ()
    epoch: Annotated[int, Meta(ge=0)] = 0
    start_calibration: Annotated[tuple[StartCalibration, ...], Meta(max_length=64)] = ()
    closed_nodes: Annotated[tuple[ClosedNode, ...], Meta(max_length=1000)] = ()


POOL_SETTINGS = Resource(
    kind=kind("poolsettings", "PoolSettings", namespaced=False),
    spec=PoolSettingsSpec,
    status=PoolSettingsStatus,
    words=("bpset",),
    text="Build quotas and policy of the whole pool. The only object is named default.",
    columns=(
        PrinterColumn("In force", ".status.conditions[?(@.type=='InForce')].status"),
        PrinterColumn("Why", ".status.conditions[?(@.type=='InForce')].message"),
        PrinterColumn("Age", ".metadata.creationTimestamp", "date"),
    ),
    rules=(
        Rule(
            "self.metadata.name == 'default'",
            "The only PoolSettings object is named default.",
        ),
    ),
)
