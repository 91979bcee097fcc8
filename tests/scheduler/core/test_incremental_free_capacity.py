"""Updated free capacity equals rebuilt free capacity, and placements match the reference rule.

The reference rule (R1, R12) is implemented here node by node, without the sets of bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchpool_scheduler.core.capacity.fragmentation import state_of
from benchpool_scheduler.core.capacity.free_capacity import FreeCapacity, NodeCapacity
from benchpool_scheduler.core.capacity.placement import NODE_LEVEL, domain_of, find, fits, reachable
from benchpool_scheduler.core.jobs.job_info import JobInfo, job_info_of
from benchpool_scheduler.core.jobs.tree import Tree
from benchpool_scheduler.core.model import (
    GpuId,
    JobFacts,
    JobId,
    Node,
    NodeName,
    Project,
    ProjectName,
)
from benchpool_scheduler.core.model import Worker as Held
from benchpool_support.asking import asking
from benchpool_support.examples import examples

PROJECTS = ("vision", "sound")
TREE = Tree([Project(ProjectName(name), quota=4) for name in PROJECTS])
LEVELS = ("zone", "rack")
many = settings(max_examples=examples(200), suppress_health_check=list(HealthCheck))


def info(number: int = 0, **facts: Any) -> JobInfo:
    return job_info_of(JobFacts(JobId(f"j{number}"), **asking(facts)), number, TREE)


@st.composite
def machines(draw: st.DrawFn) -> list[Node]:
    nodes = []
    for at in range(draw(st.integers(1, 7))):
        labels = {
            level: value
            for level in LEVELS
            if (value := draw(st.sampled_from(["x", "y", "z", ""])))
        }
        nodes.append(
            Node(
                NodeName(f"n{at}"),
                tuple(GpuId(f"n{at}-{gpu}") for gpu in range(draw(st.integers(0, 6)))),
                kept=draw(st.sampled_from([0, 0, 0, 1, 2])),
                gpu_model=draw(st.sampled_from(["A", "B", None])),
                cpus=draw(st.sampled_from([None, None, 4, 16])),
                memory_gib=draw(st.sampled_from([None, None, None, 8])),
                labels=labels,
                ready=draw(st.sampled_from([True, True, True, False])),
                shared=draw(st.booleans()),
            )
        )
    return nodes


@st.composite
def infos(draw: st.DrawFn) -> JobInfo:
    level = st.sampled_from([None, None, None, "zone", "rack", NODE_LEVEL, "row"])
    fraction = draw(st.sampled_from([None, None, 200, 500, 700]))
    return info(
        draw(st.integers(0, 5)),
        project=ProjectName(draw(st.sampled_from(PROJECTS))),
        fraction=fraction,
        gpus=1 if fraction else draw(st.integers(0, 3)),
        cpus=draw(st.sampled_from([0, 0, 1, 3])),
        memory_gib=draw(st.sampled_from([0, 0, 0, 2])),
        gpu_models=draw(st.sampled_from([(), (), ("A",), ("B", "A")])),
        required_level=draw(level),
        preferred_level=draw(level),
    )


@dataclass
class Story:
    """Free capacity and all changes to it that are not undone."""

    capacity: FreeCapacity
    seated: list[tuple[JobInfo, Held]] = field(default_factory=list)
    releasing: list[tuple[JobInfo, Held]] = field(default_factory=list)
    taken: list[tuple[JobInfo, Held]] = field(default_factory=list)
    back: list[tuple[JobInfo, Held]] = field(default_factory=list)

    def step(self, data: st.DataObject, *, facts: bool = True) -> None:
        kinds = ["go", "stay", "take", "back", "again"] + ["seat", "unseat"] * facts
        kind = data.draw(st.sampled_from(kinds))
        if kind == "seat":
            self.seat(data)
        elif kind == "take":
            self.take(data)
        elif kind == "unseat" and (free := [x for x in self.seated if x not in self.releasing]):
            one = data.draw(st.sampled_from(free))
            self.seated.remove(one)
            self.capacity.unseat(one[0], [one[1]])
        elif kind == "go" and (free := [x for x in self.seated if x not in self.releasing]):
            one = data.draw(st.sampled_from(free))
            self.releasing.append(one)
            self.capacity.release(*one)
        elif kind == "stay" and (free := [x for x in self.releasing if not self.nominated(x[1])]):
            one = data.draw(st.sampled_from(free))
            self.releasing.remove(one)
            self.capacity.hold(*one)
        elif kind == "back" and self.taken:
            one = data.draw(st.sampled_from(self.taken))
            self.taken.remove(one)
            self.back.append(one)
            self.capacity.unassign(*one)
        elif kind == "again" and self.back:
            one = self.back.pop()
            if not self.held(one[1]) and not self.nominated(one[1]):
                self.taken.append(one)
                self.capacity.assign(*one)

    def held(self, worker: Held) -> bool:
        stays = [other for other in self.seated if other not in self.releasing]
        return any(set(worker.gpus) & set(other.gpus) for _, other in [*stays, *self.taken])

    def nominated(self, worker: Held) -> bool:
        return any(set(worker.gpus) & set(other.gpus) for _, other in self.taken)

    def seat(self, data: st.DataObject) -> None:
        one = replace_job(data.draw(infos()), f"s{len(self.seated)}-{data.draw(st.integers())}")
        places = find(one, 1, self.capacity, releasing=False, among=self.capacity.every)
        if places is not None:
            taken = self.capacity.take(one, places).workers[0]
            self.capacity.unassign(one, taken)
            gpus = (*taken.gpus, GpuId("gone")) if data.draw(st.booleans()) else taken.gpus
            held = Held(taken.node, gpus, taken.part)
            self.seated.append((one, held))
            self.capacity.seat(one, [held])

    def take(self, data: st.DataObject) -> None:
        one = replace_job(data.draw(infos()), f"t{len(self.taken)}-{data.draw(st.integers())}")
        releasing, count = data.draw(st.booleans()), data.draw(st.integers(1, 4))
        count = 1 if one.requirements.part else count
        places = find(one, count, self.capacity, releasing=releasing)
        if places is not None:
            self.taken += [(one, worker) for worker in self.capacity.take(one, places).workers]

    def afresh(self) -> FreeCapacity:
        capacity = FreeCapacity(self.nodes, LEVELS)
        for one in self.seated:
            capacity.seat(one[0], [one[1]])
        for one in self.releasing:
            capacity.release(*one)
        for one in self.taken:
            capacity.assign(*one)
        return capacity

    nodes: Sequence[Node] = ()


def replace_job(one: JobInfo, name: str) -> JobInfo:
    return job_info_of(replace(one.job, id=JobId(name)), one.age, TREE)


def orders(places: list[NodeCapacity] | None) -> list[int] | None:
    return None if places is None else [node.order for node in places]


def seen(capacity: FreeCapacity, probes: Sequence[JobInfo]) -> list[object]:
    """Return the answers of free capacity to all possible queries."""
    found: list[object] = [capacity.used, capacity.by_free]
    for node in capacity.nodes:
        found += [node.free, node.free_releasing, node.workers, node.unused, node.leaving]
        found.append(node.short_for_benches())
    for probe in probes:
        found += [capacity.free(probe.requirements), capacity.most_free(probe.requirements)]
        for releasing in (False, True):
            found.append(
                [node.slots(probe.requirements, releasing=releasing) for node in capacity.nodes]
            )
            for count in (1, 2, 5):
                places = find(probe, count, capacity, releasing=releasing)
                found.append(orders(places))
                if places is not None:
                    taken = capacity.take(probe, places)
                    found.append(taken)
                    for worker in taken.workers:
                        capacity.unassign(probe, worker)
    return found


@many
@given(machines(), st.data())
def test_updated_capacity_equals_rebuilt_capacity(nodes: list[Node], data: st.DataObject) -> None:
    story = Story(FreeCapacity(nodes, LEVELS), nodes=nodes)
    probes = [data.draw(infos()) for _ in range(3)]
    for _ in range(data.draw(st.integers(0, 25))):
        story.step(data)
        find(probes[0], 2, story.capacity, releasing=data.draw(st.booleans()))
    assert seen(story.capacity, probes) == seen(story.afresh(), probes)


@many
@given(machines(), st.data())
def test_undo_of_all_changes_restores_capacity(nodes: list[Node], data: st.DataObject) -> None:
    story = Story(FreeCapacity(nodes, LEVELS), nodes=nodes)
    probes = [data.draw(infos()) for _ in range(2)]
    for _ in range(data.draw(st.integers(0, 20))):
        story.step(data)
    for one in story.taken:
        story.capacity.unassign(*one)
    for one in story.releasing:
        story.capacity.hold(*one)
    for one in story.seated:
        story.capacity.unseat(one[0], [one[1]])
    assert seen(story.capacity, probes) == seen(FreeCapacity(nodes, LEVELS), probes)


@many
@given(machines(), st.data())
def test_rollback_undoes_all_changes_of_pass(nodes: list[Node], data: st.DataObject) -> None:
    story = Story(FreeCapacity(nodes, LEVELS), nodes=nodes)
    probes = [data.draw(infos()) for _ in range(2)]
    for _ in range(data.draw(st.integers(0, 12))):
        story.step(data)
    before = seen(story.capacity, probes)
    savepoint = story.capacity.savepoint()
    for _ in range(data.draw(st.integers(0, 12))):
        story.step(data, facts=False)
        seen(story.capacity, probes)
    story.capacity.rollback(savepoint)
    assert seen(story.capacity, probes) == before


@many
@given(machines(), st.data())
def test_placements_match_reference_rule(nodes: list[Node], data: st.DataObject) -> None:
    story = Story(FreeCapacity(nodes, LEVELS), nodes=nodes)
    for _ in range(data.draw(st.integers(0, 12))):
        story.step(data)
    probe = data.draw(infos())
    grows = data.draw(st.booleans())
    if story.seated and grows:
        held = (data.draw(st.sampled_from(story.seated))[1],)
        probe = job_info_of(replace(probe.job, held=held), 0, TREE)
    but = (
        data.draw(st.sampled_from([None, *story.capacity.nodes])) if story.capacity.nodes else None
    )
    releasing, anywhere = data.draw(st.booleans()), data.draw(st.booleans())
    for count in range(1, 8):
        among = story.capacity.every if anywhere else reachable(probe, story.capacity)
        if but is not None:
            among &= ~(1 << but.order)
        found = find(probe, count, story.capacity, releasing=releasing, among=among)
        plain = Plain(probe, count, story.capacity, releasing, but, anywhere).find()
        assert orders(found) == orders(plain)
        if but is None and not anywhere:
            assert fits(probe, count, story.capacity, releasing=releasing) == (found is not None)
            for node in story.capacity.nodes:
                here = among & (1 << node.order)
                alone = find(probe, count, story.capacity, releasing=releasing, among=here)
                assert alone is None or alone == [node] * count


@dataclass
class Plain:
    """Reference rule of placement, node by node."""

    info: JobInfo
    count: int
    capacity: FreeCapacity
    releasing: bool
    but: NodeCapacity | None
    anywhere: bool

    def find(self) -> list[NodeCapacity] | None:
        for choice in self.choices():
            nodes = [n for n in choice if n is not self.but and self.slots(n) > 0]
            required = self.info.requirements.required
            domains = [nodes] if required is None else self.domains(nodes, required)
            large = [d for d in domains if self.size(d) >= self.count]
            if large and self.single():
                return [min(large[0], key=lambda n: (self.spoilt(n), self.tightness(n)))]
            if large:
                return self.fill(min(large, key=self.size), self.count, self.levels())
        return None

    def single(self) -> bool:
        """Return whether one worker is placed by least fragmentation, in a pool of unlike nodes."""
        requirements = self.info.requirements
        plain = requirements.required is None and requirements.preferred in (None, NODE_LEVEL)
        mixed = any(n.node.shared or n.cpus_bound or n.memory_bound for n in self.capacity.nodes)
        return self.count == 1 and plain and mixed and not self.releasing

    def spoilt(self, node: NodeCapacity) -> int:
        loss = self.capacity.usual.loss(state_of(node), self.info.requirements)
        assert loss is not None
        return loss

    def slots(self, node: NodeCapacity) -> int:
        return node.slots(self.info.requirements, releasing=self.releasing)

    def size(self, nodes: Sequence[NodeCapacity]) -> int:
        return sum(self.slots(n) for n in nodes)

    def choices(self) -> Iterator[list[NodeCapacity]]:
        nodes = self.pinned()
        models = self.info.requirements.models
        if not models:
            yield nodes
        for model in models:
            yield [n for n in nodes if n.node.gpu_model == model]
        yield [n for n in nodes if n.node.gpu_model in models]

    def shared(self, nodes: Sequence[NodeCapacity]) -> list[NodeCapacity]:
        return [n for n in nodes if n.node.shared or not self.info.requirements.part]

    def pinned(self) -> list[NodeCapacity]:
        level, held = self.info.requirements.required, self.info.job.held
        if level is None or not held or self.anywhere:
            return list(self.capacity.nodes)
        if (first := self.capacity.by_name.get(held[0].node)) is None:
            return []
        domain = domain_of(first.node, level, LEVELS)
        return [n for n in self.capacity.nodes if domain_of(n.node, level, LEVELS) == domain]

    def domains(self, nodes: Sequence[NodeCapacity], level: str) -> list[list[NodeCapacity]]:
        found: dict[object, list[NodeCapacity]] = {}
        for node in nodes:
            if (name := domain_of(node.node, level, LEVELS)) is not None:
                found.setdefault(name, []).append(node)
        return list(found.values())

    def levels(self) -> list[str]:
        preferred = self.info.requirements.preferred
        if preferred is None or preferred == NODE_LEVEL:
            return [NODE_LEVEL]
        at = LEVELS.index(preferred) if preferred in LEVELS else None
        return [*(LEVELS[at:] if at is not None else [preferred]), NODE_LEVEL]

    def fill(
        self, nodes: Sequence[NodeCapacity], count: int, levels: list[str]
    ) -> list[NodeCapacity]:
        places: list[NodeCapacity] = []
        if levels[0] == NODE_LEVEL:
            left = list(nodes)
            while (rest := count - len(places)) > 0:
                whole = [n for n in left if self.slots(n) >= rest]
                best = min(
                    whole or left, key=self.tightness if whole else lambda n: self.largeness(n)
                )
                left.remove(best)
                places += [best] * min(rest, self.slots(best))
            return places
        domains = self.domains(nodes, levels[0])
        domains += [[n] for n in nodes if domain_of(n.node, levels[0], LEVELS) is None]
        while (rest := count - len(places)) > 0:
            large = [d for d in domains if self.size(d) >= rest]
            best_domain = min(large, key=self.size) if large else max(domains, key=self.size)
            domains.remove(best_domain)
            places += self.fill(best_domain, min(rest, self.size(best_domain)), levels[1:])
        return places

    def tightness(self, node: NodeCapacity) -> tuple[bool, int, int]:
        return node.workers == 0, node.free_gpus(releasing=self.releasing), node.order

    def largeness(self, node: NodeCapacity) -> tuple[int, bool, int]:
        return -self.slots(node), node.workers == 0, node.order
