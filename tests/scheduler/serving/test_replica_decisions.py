"""Start, leave and stop of replicas: over random lives of services, and for named cases."""

from __future__ import annotations

from dataclasses import replace
from itertools import count, pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from benchpool_scheduler.serving.decisions import DRAIN_S, SETTLE_S, carried_out, decide
from benchpool_scheduler.serving.facts import (
    MOST_FAILURES,
    ReplicaFacts,
    ReplicaFailure,
    ServiceActs,
    ServicePlan,
    ServiceStanding,
    ServiceTraffic,
)
from benchpool_scheduler.serving.restarts import LONGEST_S, SOUND_S
from benchpool_scheduler.serving.scaling import HOLD_S
from benchpool_scheduler.serving.states import (
    MODES,
    ReplicaPhase,
    ServiceMode,
    ServiceSign,
    mode_after,
)

WAITING, STARTING, READY, LEAVING, ENDED = ReplicaPhase
AWAKE, ASLEEP, STOPPED = ServiceMode


class World:
    """Pool with capacity for ``room`` replicas; programs answer as soon as possible."""

    def __init__(self, plan: ServicePlan, room: int = 99, *, broken: frozenset[int] = frozenset()):
        self.now, self.room, self.broken = 1000.0, room, broken
        self.standing = ServiceStanding(plan, AWAKE, self.now)
        self.traffic = ServiceTraffic(watched=self.now)
        self.ids = count()
        self.begun: list[float] = []
        self.fewest_ready = 0

    def phases(self, *wanted: ReplicaPhase) -> list[ReplicaFacts]:
        return [it for it in self.standing.replicas if it.phase in wanted]

    def look(self) -> ServiceActs:
        acts = decide(self.standing, self.traffic, self.now)
        applied = carried_out(self.standing, acts, self.now)
        kept = [it for it in applied.replicas if it.job not in acts.stop]
        new = [
            ReplicaFacts(f"j{next(self.ids)}", applied.plan.version, WAITING)
            for _ in range(acts.begin)
        ]
        self.begun += [self.now] * acts.begin
        self.standing = replace(applied, replicas=(*kept, *new))
        return acts

    def start(self) -> None:
        """Start jobs while capacity is free."""
        free = self.room - len(self.phases(STARTING, READY, LEAVING))
        found = []
        for it in self.standing.replicas:
            if it.phase is WAITING:
                it = replace(it, lacks_room=free <= 0, phase=STARTING if free > 0 else WAITING)
                free -= 1
            found.append(it)
        self.standing = replace(self.standing, replicas=tuple(found))

    def answer(self) -> None:
        """Let running programs answer, or fail if their version is broken."""
        for it in self.phases(STARTING):
            if it.version in self.broken:
                self.fail(it)
            else:
                self.put(replace(it, phase=READY, ready_since=self.now))

    def put(self, replica: ReplicaFacts) -> None:
        found = tuple(replica if it.job == replica.job else it for it in self.standing.replicas)
        self.standing = replace(self.standing, replicas=found)

    def fail(self, replica: ReplicaFacts) -> None:
        ready_s = 0.0 if replica.ready_since is None else self.now - replica.ready_since
        failure = ReplicaFailure(self.now, replica.version, ready_s)
        self.standing = replace(
            self.standing,
            replicas=tuple(it for it in self.standing.replicas if it.job != replica.job),
            failures=(failure, *self.standing.failures)[:MOST_FAILURES],
        )

    def settle(self, most: int = 200) -> None:
        """Continue until nothing changes without a request."""
        for _ in range(most):
            acts = self.look()
            before = self.standing
            self.start()
            self.fewest_ready = min(self.fewest_ready, len(self.phases(READY)))
            self.answer()
            if acts.nothing and before == self.standing:
                if acts.look_at is None or acts.look_at - self.now > LONGEST_S:
                    return
                self.now = acts.look_at

    def request(self, in_flight: int) -> None:
        self.traffic = replace(self.traffic, in_flight=in_flight, last=self.now)
        self.request_wakes()

    def request_wakes(self) -> None:
        mode = mode_after(self.standing.mode, ServiceSign.REQUEST)
        if mode is not self.standing.mode:
            self.standing = replace(self.standing, mode=mode, mode_since=self.now)

    def change(self) -> None:
        plan = replace(self.standing.plan, version=self.standing.plan.version + 1)
        self.standing = replace(self.standing, plan=plan)
        self.fewest_ready = len(self.phases(READY))


plans = st.builds(
    lambda least, more, idle, per, shares: ServicePlan(
        0 if shares and least > 1 else least,
        1 if shares else max(least + more, 1),
        idle,
        per,
        shares_port=shares,
    ),
    st.integers(0, 3),
    st.integers(0, 3),
    st.sampled_from([10.0, 400.0]),
    st.integers(1, 4),
    st.booleans(),
)
steps = st.lists(
    st.sampled_from(["look", "start", "answer", "fail", "change", "calm", "busy", "later", "long"]),
    max_size=60,
)


@given(plans, st.integers(0, 5), steps)
@settings(max_examples=300)
def test_replicas_stay_within_maximum_and_leave_before_stop(
    plan: ServicePlan, room: int, taken: list[str]
) -> None:
    world = World(plan, room)
    for step in taken:
        before = world.standing
        if step == "look":
            acts = world.look()
            phases = {it.job: it.phase for it in before.replicas}
            assert all(phases[job] is LEAVING for job in acts.stop)
            assert all(phases[job] not in (LEAVING, ENDED) for job in acts.leave)
            assert world.look().nothing, "twice the same question"
            own = world.phases(WAITING, STARTING, READY)
            newest = [it for it in own if it.version == world.standing.plan.version]
            assert len(newest) <= world.standing.plan.most
            assert len(own) <= max(acts.wanted + 1, len(before.replicas))
            assert acts.look_at is None or acts.look_at > world.now
            if acts.leave:
                assert acts.look_at is not None, "whoever leaves is looked at again"
                assert acts.look_at <= world.now + SETTLE_S
            if acts.mode is not AWAKE:
                assert own == []
            if plan.shares_port:
                assert len(world.standing.replicas) <= 1
        elif step == "fail" and world.phases(STARTING, READY, LEAVING):
            world.fail(world.phases(STARTING, READY, LEAVING)[0])
        elif step == "change":
            world.change()
        elif step in ("calm", "busy"):
            world.request(0 if step == "calm" else 7)
        elif step in ("later", "long"):
            world.now += 1.0 if step == "later" else 700.0
        elif step in ("start", "answer"):
            getattr(world, step)()


@given(st.integers(1, 4), st.integers(0, 3))
def test_new_version_keeps_number_of_ready_replicas(least: int, more: int) -> None:
    world = World(ServicePlan(least, least + more))
    world.settle()
    assert len(world.phases(READY)) == least
    world.change()
    world.settle()
    assert world.fewest_ready == least
    assert {it.version for it in world.standing.replicas} == {2}
    assert len(world.begun) == 2 * least


@given(st.integers(2, 4))
def test_new_or_failing_version_starts_replicas_singly(least: int) -> None:
    world = World(ServicePlan(least, least))
    world.settle()
    world.change()
    assert [world.look().begin, world.look().begin] == [1, 0]
    failing = World(ServicePlan(least, least), broken=frozenset({1}))
    failing.look()
    failing.start()
    failing.answer()
    failing.now += LONGEST_S
    assert [failing.look().begin, failing.look().begin] == [1, 0]


@given(st.integers(1, 4))
def test_rollout_without_capacity_stops_one_old_replica_first(least: int) -> None:
    world = World(ServicePlan(least, least), room=least)
    world.settle()
    world.change()
    world.settle()
    assert world.fewest_ready == least - 1
    assert {it.version for it in world.phases(READY)} == {2}
    assert len(world.phases(READY)) == least


def test_exclusive_port_stops_old_replica_first() -> None:
    world = World(ServicePlan(shares_port=True))
    world.settle()
    world.change()
    assert world.look().leave == ("j0",)
    assert decide(world.standing, world.traffic, world.now).begin == 0
    world.settle()
    assert [(it.job, it.version) for it in world.phases(READY)] == [("j1", 2)]


@given(st.integers(1, 3), st.integers(0, 3))
def test_failing_version_keeps_old_replicas_if_capacity_allows(least: int, spare: int) -> None:
    world = World(ServicePlan(least, least), room=least + 1 + spare, broken=frozenset({2}))
    world.settle()
    world.change()
    world.settle()
    assert [it.version for it in world.phases(READY)] == [1] * least


def test_restart_delay_is_capped_and_reset_after_stable_run() -> None:
    world = World(ServicePlan(), broken=frozenset({1}))
    world.settle(400)
    pauses = [later - at for at, later in pairwise(world.begun)]
    assert pauses[:10] == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, LONGEST_S]
    assert set(pauses[9:]) == {LONGEST_S}
    world.broken = frozenset()
    world.settle()
    (sound,) = world.phases(READY)
    world.now += SOUND_S
    world.fail(sound)
    assert decide(world.standing, world.traffic, world.now).look_at == world.now + 1.0


def test_idle_service_sleeps_and_wakes_on_request() -> None:
    world = World(ServicePlan(least=0, idle_s=400.0))
    world.settle()
    assert world.standing.mode is AWAKE, "it is let answer before it sleeps"
    world.request(1)
    world.now += 4000.0
    world.settle()
    assert world.phases(READY), "one long request keeps it awake"
    world.traffic = replace(world.traffic, in_flight=0, last=world.now)
    world.now += 399.0
    assert world.look().nothing
    world.now += 1.0
    acts = world.look()
    assert (acts.mode, acts.leave) == (ASLEEP, ("j0",))
    world.settle()
    assert world.standing.replicas == ()
    world.request(1)
    world.settle()
    assert len(world.phases(READY)) == 1


def test_service_keeps_its_place_in_queue_while_clients_wait() -> None:
    world = World(ServicePlan(least=0, idle_s=400.0), room=0)
    world.settle()
    world.now += 4000.0
    assert world.look().nothing, "it was started and has not answered yet"
    world.room = 1
    world.settle()
    world.request(0)
    world.now += 400.0
    world.settle()
    assert world.standing.replicas == ()
    world.room = 0
    world.traffic = replace(world.traffic, unserved=world.now)
    world.request_wakes()
    world.settle()
    world.now += 4000.0
    acts = world.look()
    assert (acts.mode, acts.leave) == (AWAKE, ()), "a request woke it"
    world.room = 1
    world.settle()
    assert len(world.phases(READY)) == 1
    world.now += 400.0
    assert world.look().mode is ASLEEP, "nothing came after it was ready"


def test_preempted_service_sleeps_unless_a_request_came_since() -> None:
    world = World(ServicePlan(least=0, idle_s=400.0))
    world.settle()
    world.request(0)
    (replica,) = world.phases(READY)
    world.room = 0
    world.put(replace(replica, phase=WAITING, ready_since=None))
    world.now += 100.0
    asked = replace(world.traffic, unserved=world.now)
    world.now += 400.0
    assert decide(world.standing, world.traffic, world.now).mode is ASLEEP
    assert decide(world.standing, asked, world.now + 4000.0).mode is AWAKE


def test_request_without_replica_counts_as_use() -> None:
    world = World(ServicePlan(least=0, idle_s=400.0), broken=frozenset({1}))
    world.look()
    world.start()
    world.answer()
    world.now += 300.0
    world.traffic = replace(world.traffic, unserved=world.now)
    world.now += 300.0
    assert decide(world.standing, world.traffic, world.now).mode is AWAKE
    assert decide(world.standing, world.traffic, world.now + 100.0).mode is ASLEEP


def test_service_with_minimum_replicas_never_sleeps() -> None:
    world = World(ServicePlan(least=1, idle_s=1.0))
    world.settle()
    world.now += 1e6
    assert world.look().nothing
    assert world.standing.mode is AWAKE


def test_requests_in_flight_scale_up_immediately_and_down_later() -> None:
    world = World(ServicePlan(least=1, most=3, per_replica=2))
    world.settle()
    world.request(5)
    world.settle()
    assert len(world.phases(READY)) == 3
    world.request(1)
    world.look()
    world.now += HOLD_S - 1.0
    world.request(5)
    world.look()
    world.request(1)
    world.look()
    world.now += HOLD_S - 1.0
    assert world.look().nothing, "a burst in between begins the time anew"
    world.now += 1.0
    assert len(world.look().leave) == 2


def test_leaving_replica_finishes_requests_until_timeout() -> None:
    world = World(ServicePlan())
    world.settle()
    world.change()
    (old,) = world.phases(READY)
    world.put(replace(old, in_flight=1))
    world.look()
    world.start()
    world.answer()
    assert world.look().leave == ("j0",)
    world.now += DRAIN_S - 1.0
    assert world.look().stop == ()
    (leaving,) = world.phases(LEAVING)
    still = world.standing
    world.put(replace(leaving, in_flight=0))
    assert world.look().stop == ("j0",)
    world.standing = still
    world.now += 1.0
    assert world.look().stop == ("j0",)


def test_stop_waits_for_requests_just_handed_over() -> None:
    world = World(ServicePlan(least=0))
    world.settle()
    world.standing = replace(world.standing, mode=ASLEEP)
    world.look()
    assert world.look().stop == ()
    world.now += SETTLE_S
    assert world.look().stop == ("j0",)


def test_mode_transitions_are_complete_and_stopped_ignores_requests() -> None:
    assert set(MODES) == set(ServiceMode)
    assert mode_after(STOPPED, ServiceSign.REQUEST) is STOPPED
    assert {mode_after(it, ServiceSign.STOP) for it in ServiceMode} == {STOPPED}
    assert {mode_after(it, ServiceSign.WAKE) for it in ServiceMode} == {AWAKE}
