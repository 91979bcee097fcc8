"""Effects of calls: from the library facts, and through the notebook's own functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from benchpool.cells import facts, known, setting_facts, unused_results
from benchpool.cells.alias_graph import Change, HeldNames
from benchpool.cells.argument_effects import ArgumentEffects, is_own
from benchpool.cells.def_use import LOGGERS, Called, CellValue, DefUse, FunctionSummary
from benchpool.cells.effect import CallSummary, Effect
from benchpool.cells.kinds import itself_or_kept
from benchpool.cells.results import arguments_of

_CALLING_FIRST = frozenset(["map", "filter"])
_ITSELF = frozenset(["data", "pure"])


class CallEffects(ArgumentEffects):
    """Effects of calls in one scope: a cell, or the body of a function."""

    def of(self, call: Called) -> Effect:
        """Return what one call changes, in the names of the calling scope."""
        effect = Effect(trains=call.chain[-1] in facts.TRAINING)
        path = self.code.path(call)
        if path is not None:
            self._library(effect, call, path)
        elif len(call.chain) == 1:
            self._plain(effect, call)
        else:
            self._method(effect, call)
        self._keywords(effect, call)
        self._functions_given(effect, call)
        self._iteration.given(effect, call)
        if unused_results.does_more(call, path, effect) and not self._is_own(call):
            self._unseen(effect, call, path)
        return effect

    def loops(self, scope: DefUse | FunctionSummary) -> Effect:
        """Return what the loops of a scope draw, and the names that they iterate."""
        return self._iteration.loops(scope)

    def implicit(self, root: str, method: str) -> Effect:
        """Return what a method of the notebook changes that Python calls implicitly."""
        effect = Effect()
        call = Called((root, method), CellValue(same=frozenset([root])), (), (), 0)
        for each in self.code.called(call, itself_or_kept(self.kinds.of_receiver(call))):
            self._own(effect, call, each)
        return effect

    def _is_own(self, call: Called) -> bool:
        return bool(self.code.called(call, self.kinds.of_receiver(call)))

    def _unseen(self, effect: Effect, call: Called, path: str | None) -> None:
        """Note the effect of a call with an unused result: its receiver and arguments change."""
        values = call.given if call.receiver is None or path is not None else (call.receiver,)
        for value in values:
            self._change(effect, value, Change.DEEP)
        given = any(self.results.named(each).names for each in values)
        if path is not None and not given and not setting_facts.only_computes(path):
            effect.setting = ".".join(call.chain)

    # ------------------------------------------------------------------ by callee

    def _library(self, effect: Effect, call: Called, path: str) -> None:
        if path.startswith("logging.") and self._logs(effect, call, frozenset()):
            return
        fact = facts.function(path)
        library = path.partition(".")[0]
        by_its_name = (library, *call.chain)
        if not (call.for_a_while or library in call.put_back) and (
            setting_facts.is_setting(by_its_name)
            or setting_facts.is_setting(tuple(path.split(".")))
        ):
            effect.setting = ".".join(call.chain)
        effect.seeds.update(dict.fromkeys(fact.seeds, ".".join(call.chain)))
        words = {word for word, _ in call.keywords}
        if words.isdisjoint({"generator", "random_state", "rng", "seed"}):
            if fact.changes is None and not self.code.is_standard(path):
                effect.asks_unknown = ".".join(call.chain)
            effect.draws |= fact.draws
            effect.draws_when_made |= fact.draws_when_made
        if fact.seeds and effect.setting is not None:
            effect.setting = None
        if fact.changes is None:
            for value in call.given:
                self._change(effect, value, Change.DEEP)
            self._unknown_function(effect, call, path)
            return
        for where in fact.changes:
            for value in call.at(where):
                self._change(effect, value, Change.DEEP)
        if fact.out is not None and len(call.arguments) > fact.out:
            self._change(effect, call.arguments[fact.out], Change.SHALLOW)
        for word, value in call.keywords:
            if word in {"generator", "random_state", "rng"}:
                self._change(effect, value, Change.ITEM)
        if path.rpartition(".")[2] == "train_test_split" and "random_state" in words:
            effect.draws.clear()
        kinds = [self.kinds.of(value) for value in call.given]
        for value, kind in zip(call.given, kinds, strict=True):
            if "iterator" in kind:
                self._change(effect, value, Change.ITEM)
            if "splitter" in kind:
                effect.draws.add("numpy")

    def _unknown_function(self, effect: Effect, call: Called, path: str) -> None:
        """Note that a function of an unknown library may set something for later code."""
        word, name = call.chain[-1], ".".join(call.chain)
        nothing = not any(self.results.held(value).names for value in call.given)
        if call.alone and nothing and setting_facts.sounds_like_setting(word):
            effect.setting = effect.setting or name
        elif (nothing or call.alone) and setting_facts.surely_sets(word):
            effect.may_set = name
        elif call.shown and nothing and not self.code.is_standard(path):
            is_put_back = call.for_a_while or path.partition(".")[0] in call.put_back
            if not (is_put_back or setting_facts.only_answers(word) or facts.file_use(word)):
                effect.may_set = name

    def _plain(self, effect: Effect, call: Called) -> None:
        name = call.chain[0]
        kinds = self.kinds.of_name(name)
        mine = self.code.called(call, kinds)
        for each in mine:
            self._own(effect, call, each)
            self._decorators(effect, name, each)
        self._as_module(effect, [name], kinds)
        if "module" in kinds:
            self.called_elsewhere(effect, [name], kinds)
        if mine or name in self.code.functions:
            return
        effect.calls.add(name)
        if name in _CALLING_FIRST:
            for value in call.arguments[:1]:
                self.called_elsewhere(effect, self.results.held(value).same, self.kinds.of(value))
        if name in {"setattr", "delattr", "next"}:
            for value in call.arguments[:1]:
                self._change(effect, value, Change.ITEM if name != "next" else Change.SHALLOW)
        elif "remembers" in kinds:
            effect.change([name], Change.SHALLOW)
        elif "bound" in kinds:
            effect.change([name], Change.DEEP)
            effect.change(self.results.given(call).reached, Change.DEEP)
        elif name in known.PROVIDED and name not in known.READING_FUNCTIONS:
            for value in call.given:
                self._change(effect, value, Change.DEEP)

    def _method(self, effect: Effect, call: Called) -> None:
        name = call.chain[-1]
        kinds = self.kinds.of_receiver(call)
        receiver = self.results.held(call.receiver)
        mine = self.code.called_as_object(kinds) if name == "[]" else self.code.called(call, kinds)
        for each in mine:
            self._own(effect, call, each)
        if name == "__enter__" and call.alone:
            effect.setting = f"{call.chain[0]}.__enter__"
        if name == "[]":
            effect.calls |= receiver.reached
            if self.code.has_closures and (not kinds or "?" in kinds):
                effect.change_value(receiver, Change.DEEP)
        if name in {"()", "[]"} and "bound" in kinds:
            effect.change_value(receiver, Change.DEEP)
        if mine and kinds and "?" not in kinds:
            return
        if self._logs(effect, call, kinds):
            return
        rule = facts.method(name)
        if mine and self.kinds.trusts(call):
            return
        modules = frozenset[str]() if mine else self.kinds.of_field(call)
        if modules:
            self._field(effect, call, modules)
            if rule == "unknown":
                return
        if name == "()":
            if call.chain[0] not in self.code.functions:
                for value in call.given:
                    self._change(effect, value, Change.DEEP)
            return
        self._by_rule(effect, call, kinds, bool(mine))

    def _by_rule(self, effect: Effect, call: Called, kinds: frozenset[str], mine: bool) -> None:
        name, rule = call.chain[-1], facts.method(call.chain[-1])
        receiver = self.results.held(call.receiver)
        if name == "backward":
            self._backward(effect, call)
        elif facts.draws_from_receiver(name) and (
            "generator" in kinds or rule == "unknown" or facts.is_seeded(call.chain[-2])
        ):
            effect.change_value(receiver, Change.DEEP)
            if name == "shuffle":
                for value in call.arguments[:1]:
                    self._change(effect, value, Change.SHALLOW)
        elif "axes" in kinds and not facts.reads_axes(name):
            effect.change_value(receiver, Change.SHALLOW)
        elif rule == "own":
            kept = call.receiver is not None and facts.are_kept_parts(call.receiver.attributes)
            effect.change_value(receiver, Change.DEEP)
            if kept or facts.changes_through(name):
                effect.change(receiver.names, Change.THROUGH)
            self._trained(effect, call)
            if facts.builds(name):
                self._keep(effect, call, receiver)
            if "writes" in kinds:
                for value in call.given:
                    self._change(effect, value, Change.SHALLOW)
        elif rule in {"keeping", "taking"}:
            how = Change.SHALLOW if name in {"update", "sort", "reverse", "fill"} else Change.ITEM
            effect.change_value(receiver, how)
            if rule == "keeping":
                self._keep(effect, call, receiver)
        elif rule == "alone":
            if call.alone or not kinds.isdisjoint({"module"}) or is_own(kinds):
                effect.change_value(receiver, Change.DEEP)
        elif rule == "unknown":
            on = receiver if name != "[]" else HeldNames()
            self._unknown_method(effect, call, kinds, on, mine)
        for where in facts.method_changes(name):
            for value in call.at(where):
                self._change(effect, value, Change.SHALLOW)
        out = facts.method_out(name)
        if out is not None and len(call.arguments) > out:
            self._change(effect, call.arguments[out], Change.SHALLOW)
        if facts.draws_of_torch(name) and "generator" not in {word for word, _ in call.keywords}:
            effect.draws.add("torch")
        if "splitter" in kinds and name == "split":
            effect.draws.add("numpy")
        if name in {"sample", "rsample", "rvs"}:
            self._sampled(effect, call, kinds)
        if "shared" in kinds and effect.changes:
            effect.setting = effect.setting or ".".join(call.chain)

    def _logs(self, effect: Effect, call: Called, kinds: frozenset[str]) -> bool:
        """Note that a logger calls the notebook's handlers; return whether it may."""
        may = facts.logs(call.chain[-1]) and self.code.has_handlers and bool(call.given)
        if not may or not (kinds <= {"?", "shared"}):
            return False
        effect.change_value(self.results.held(call.receiver), Change.DEEP)
        effect.change([LOGGERS], Change.DEEP)
        for function in self.code.methods("emit", None):
            settled = self.code.settled.get(id(function), CallSummary())
            effect.add_ambient(settled.effect)
        return True

    def _field(self, effect: Effect, call: Called, kinds: frozenset[str]) -> None:
        """Note the call of a module that an object keeps (``vae.encoder(x)``)."""
        for function in self.code.called_as_object(kinds):
            self._own(effect, call, function)
        if self._remembers(kinds) or "remembers" in kinds:
            effect.change_value(self.results.held(call.receiver), Change.SHALLOW)
        if self._drops(kinds):
            effect.draws.add("torch")

    def _keep(self, effect: Effect, call: Called, receiver: HeldNames) -> None:
        kept = self.results.kept(call)
        for held_by in receiver.same | receiver.part:
            effect.keep(held_by, kept)

    def _sampled(self, effect: Effect, call: Called, kinds: frozenset[str]) -> None:
        if any(word == "random_state" for word, _ in call.keywords):
            return
        if "distribution" not in kinds:
            effect.draws.add("numpy")
        if call.chain[-1] != "rvs" and (not kinds or not kinds.isdisjoint({"?", "distribution"})):
            effect.draws.add("torch")

    def _unknown_method(
        self, effect: Effect, call: Called, kinds: frozenset[str], receiver: HeldNames, mine: bool
    ) -> None:
        in_place = call.chain[-1].endswith("_")
        if "patcher" in kinds and call.chain[-1] == "start":
            effect.setting = "mock.patch(…).start"
        effect.change_value(receiver, Change.SHALLOW if in_place else Change.DEEP)
        if in_place or mine or (kinds and kinds <= _ITSELF) or call.chain[0] == "super":
            return
        if call.chain[0] in self.code.imports and setting_facts.is_setting(call.chain):
            effect.setting = ".".join(word for word in call.chain if word not in {"()", "[]"})
        for value in call.given:
            self._change(effect, value, Change.DEEP)

    def _own(self, effect: Effect, call: Called, function: FunctionSummary) -> None:
        """Note the effects of a function of the notebook on the arguments of a call."""
        settled = self.code.settled.get(id(function), CallSummary())
        given = arguments_of(call, function)
        for name, how in settled.effect.changes.items():
            for value in given.get(name, ()):
                self._change(effect, value, how)
        if settled.fields and function.owner is not None and len(call.chain) > 1:
            effect.change_value(self.results.held(call.receiver), settled.of_object)
        elif settled.fields and len(call.chain) == 1 and call.chain[0] not in self.code.classes:
            name, is_own_method, _ = call.chain[0].partition(".")
            for field, how in settled.fields.items():
                effect.change([f"{name}.{field}" if is_own_method and field else name], how)
        effect.add_ambient(settled.effect)
        self._called_inside(effect, call, settled, given)
        for target, held in settled.effect.keeps.items():
            kept = self.results.bound(call, function, held)
            where = self.results.argument(call, function, target)
            for held_by in where.same | where.part:
                effect.keep(held_by, kept.as_inside())

    def _called_inside(
        self,
        effect: Effect,
        call: Called,
        settled: CallSummary,
        given: Mapping[str, Sequence[CellValue]],
    ) -> None:
        """Note that a function of the notebook calls its arguments or what its object keeps."""
        for name in settled.effect.calls:
            for value in given.get(name, ()):
                self.called_elsewhere(effect, self.results.held(value).same, self.kinds.of(value))
        if settled.iterates_fields and call.receiver is not None:
            effect.iterates |= self.results.held(call.receiver).reached
        elif settled.iterates_fields and call.chain[0] not in self.code.classes:
            effect.iterates.add(call.chain[0])
        if settled.calls_fields and call.receiver is not None:
            effect.calls_held |= self.results.held(call.receiver).reached
        elif settled.calls_fields and call.chain[0] not in self.code.classes:
            effect.calls_held.add(call.chain[0])
        for name in settled.effect.calls_held:
            for value in given.get(name, ()):
                effect.calls_held |= self.results.held(value).reached

    def called_elsewhere(self, effect: Effect, names: Iterable[str], kinds: frozenset[str]) -> None:
        """Note that an object, or an object that it keeps, is called elsewhere."""
        effect.calls.update(names := list(names))
        kinds = itself_or_kept(kinds)
        self._as_module(effect, names, kinds)
        if "remembers" in kinds:
            effect.change(names, Change.SHALLOW)
        if "bound" in kinds:
            effect.change(names, Change.DEEP)
        for function in self.code.called_as_object(kinds):
            settled = self.code.settled.get(id(function), CallSummary())
            if settled.fields:
                effect.change(names, settled.of_object)
            if settled.calls_fields:
                effect.calls_held.update(names)
            effect.add_ambient(settled.effect)

    def _as_module(self, effect: Effect, names: Iterable[str], kinds: frozenset[str]) -> None:
        """Note that objects are called as torch modules."""
        if self._remembers(kinds):
            effect.change(names, Change.SHALLOW)
        if self._drops(kinds):
            effect.draws.add("torch")

    def _decorators(self, effect: Effect, name: str, function: FunctionSummary) -> None:
        """Note the effects of the objects that decorators have made of a function."""
        for decorator in [each[0] for each in function.decorators if len(each) == 1]:
            family = self.code.family(decorator)
            made = self.code.methods("__call__", family) if family else []
            for each in [*made, *(self.code.functions.get(decorator, []) if not family else [])]:
                settled = self.code.settled.get(id(each), CallSummary())
                effect.change_outer(settled.effect.outer)
                if settled.fields or each.keeps_state:
                    effect.change([name], Change.DEEP)
