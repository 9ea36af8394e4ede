"""Hypothesis drives a session: a state machine whose rules are engine moves.

Hypothesis generates, and nothing more: the moves that were taken are recorded, and ``shrink`` makes
them small by replay. Hypothesis's own shrinker works on its choices, of which one example here
holds hundreds, each candidate paying for a whole run; docs/fuzzing.md has the measurement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import ClassVar

import msgspec
from hypothesis import reject
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from kvproof.conformance.engines.base import (
    Abort,
    Add,
    Drain,
    Extend,
    Move,
    ResetCache,
    Step,
    Target,
    Unsupported,
)
from kvproof.conformance.fuzz.session import MakeJudge, Session
from kvproof.conformance.fuzz.strategies import Plan, plans_for

LIVE = 5
"""Requests that aborts choose from, and ids when they are used again."""

RUN_OUT = 64
"""Steps until all requests must have ended by themselves; a few more than the longest takes."""

_fractions = st.integers(0, 1 << 12)


class EngineMachine(RuleBasedStateMachine):
    """Engine moves over a drawn plan. ``machine_for`` binds the class to a target."""

    target: ClassVar[Target]
    make_judge: ClassVar[MakeJudge]
    ended: ClassVar[Callable[[EngineMachine], None]]

    def __init__(self) -> None:
        super().__init__()
        self.session: Session | None = None
        self.uses: Counter[str] = Counter()
        self.plan: Plan | None = None
        self.recent = ["r0"]

    @property
    def running(self) -> Session:
        """The session, once the plan is drawn."""
        assert self.session is not None
        return self.session

    @property
    def drawn(self) -> Plan:
        """The plan, once it is drawn."""
        assert self.plan is not None
        return self.plan

    @property
    def may_preempt(self) -> bool:
        """Whether resets may preempt running requests.

        With a step in flight the core of some releases then drops a token that was never sampled,
        and the request waits for it for ever: loud, and nothing that a connector could help.
        """
        features = self.running.engine.header.features
        return not self.drawn.setup.asynchronous or bool(features.get("preempts_ahead", True))

    def begin(self, plan: Plan) -> None:
        """Start the engine for the plan; a setup that only its start refuses is drawn anew."""
        self.plan = plan
        try:
            self.session = Session(type(self).target, plan.setup, type(self).make_judge)
        except Unsupported:
            reject()

    def take(self, name: str, move: Move) -> bool:
        """Play a move under a rule's name; counted when the engine took it."""
        taken = self.running.play(move)
        if taken:
            self.uses[name] += 1
        return taken

    @rule(length=_fractions, branch=_fractions, more=_fractions, name=_fractions)
    def add(self, length: int, branch: int, more: int, name: int) -> None:
        """A client sends one of the overlapping prompts, and may ask for something special."""
        plan, prompts = self.drawn, self.drawn.prompts
        tokens = prompts.prompt(
            prompts.lengths[length % len(prompts.lengths)], branch % (len(prompts.branches) + 1)
        )
        # More only wait, and make the drain at the end long.
        for req in self.free_ids(name) if self.running.live < LIVE else ():
            plain = Add(req, tokens, 1 + more % plan.max_tokens)
            special = self.special(plain, more // plan.max_tokens + name)
            # A release that does not know what the client asks for gets the prompt alone.
            if (special != plain and self.take("add", special)) or self.take("add", plain):
                self.recent = [*self.recent[1 - LIVE :], req]
                return

    def special(self, add: Add, choice: int) -> Add:
        """What the client asks for beyond its prompt: nothing in every other case."""
        plan = self.drawn
        if not plan.options or choice % 2:
            return add
        choice, option = divmod(choice // 2, len(plan.options))
        match plan.options[option]:
            case "max_load" | "max_offload" as cap:
                return msgspec.structs.replace(add, **{cap: plan.caps[choice % len(plan.caps)]})
            case "stop_after":
                return msgspec.structs.replace(add, stop_after=1 + choice % add.max_tokens)
            case asked:
                return msgspec.structs.replace(add, **{asked: True})

    def free_ids(self, first: int) -> list[str]:
        """Ids to try for a new request: one never used, or a few, of which ended ones are free."""
        if self.drawn.reuses_ids:
            return [f"r{(first + i) % LIVE}" for i in range(LIVE)]
        return [f"r{self.uses['add']}"]

    @rule(length=_fractions, branch=_fractions, more=_fractions, name=_fractions)
    def add_pair(self, length: int, branch: int, more: int, name: int) -> None:
        """Two clients at once, whose requests run side by side and press on the pool."""
        self.add(length, branch, more, name)
        self.add(length // 7, branch // 7, more // 7, name)

    @rule(choice=_fractions, failing=_fractions)
    def step(self, choice: int, failing: int) -> None:
        """One engine step; copies may fail in it, where the workers can say so."""
        plan = self.drawn
        finish = plan.finishes[choice % len(plan.finishes)]
        fail = plan.fails[failing % len(plan.fails)]
        if not (fail and self.take("step", Step(finish, fail))):
            self.take("step", Step(finish))

    @rule(choice=_fractions, count=st.integers(2, 8))
    def steps(self, choice: int, count: int) -> None:
        """Several steps alike: progress, which single moves would make too slowly."""
        finish = self.drawn.finishes[choice % len(self.drawn.finishes)]
        for _ in range(count):
            self.take("steps", Step(finish))

    @rule(count=st.integers(1, 6))
    def finishing_steps(self, count: int) -> None:
        """Steps in which every copy ends, so that keys become readable."""
        for _ in range(count):
            self.take("finishing_steps", Step("all"))

    @rule(choice=_fractions, who=_fractions)
    def disturb(self, choice: int, who: int) -> None:
        """One of the disturbances that this example's swarm switched on."""
        disturbances = self.drawn.disturbances
        name = disturbances[choice % len(disturbances)]
        match name:
            case "abort":
                self.take(name, Abort(self.recent[who % len(self.recent)]))
            case "abort_latest":
                # Often before it was ever scheduled.
                self.take(name, Abort(self.recent[-1]))
            case "forget_on_the_gpu":
                self.take(name, ResetCache(connector=False, running=False))
            case "preempt_all":
                self.take(name, ResetCache(connector=False, running=self.may_preempt))
            case "reset":
                self.take(name, ResetCache(True, self.may_preempt and who % 2 == 1))
            case "reset_twice":
                self.take(name, ResetCache(True, self.may_preempt and who % 2 == 1))
                self.take(name, ResetCache(connector=True, running=False))
            case "come_to_rest":
                self.take(name, Drain())
            case "abort_at_once":
                self.add(who, who // 5, who // 25, who)
                self.take(name, Abort(self.recent[-1]))
            case "reset_while_loading":
                self.rest_and_forget(name)
                self.add(who, who // 5, who // 25, who)
                self.take(name, Step("none"))
                self.take(name, ResetCache(True, self.may_preempt and who % 2 == 1))
            case "hold_copies":
                # Windows slide while stores are refused; then there is room again.
                if not self.running.live:
                    self.add_pair(who, who // 5, who // 25, who)
                for _ in range(4 + who % 12):
                    self.take(name, Step("none"))
                self.take(name, Step("all"))
            case "run_out":
                # The last stores are planned in a step without a forward.
                for _ in range(RUN_OUT):
                    if not (self.running.live and self.take(name, Step("none"))):
                        break
                self.take(name, Step("none"))
                self.add(who, who // 5, who // 25, who)
            case "go_on":
                self.extend(name, who)
            case _:
                self.rest_and_forget(name)

    def rest_and_forget(self, name: str) -> None:
        """The GPU prefix cache can only be emptied when nothing runs."""
        self.take(name, Drain())
        self.take(name, ResetCache(connector=False, running=False))

    def extend(self, name: str, who: int) -> None:
        """One of the open sessions gets more input, or hears that there will be none."""
        plan = self.drawn
        req = self.recent[who % len(self.recent)]
        length = plan.prompts.lengths[who % len(plan.prompts.lengths)]
        # Prompts of one family go on alike, so two sessions can come to be equal again.
        tokens = plan.prompts.prompt(length, 0) if who % 4 else ()
        self.take(name, Extend(req, tokens, 1 + who % plan.max_tokens))

    def teardown(self) -> None:
        """Drain, so that what never ends shows; then hand the session over."""
        if self.session is None:
            return
        try:
            self.take("drain", Drain())
        finally:
            self.session.close()
        type(self).ended(self)


def machine_for(
    target: Target,
    make_judge: MakeJudge,
    ended: Callable[[EngineMachine], None],
    plans: st.SearchStrategy[Plan] | None = None,
) -> type[EngineMachine]:
    """The machine bound to a target; ``ended`` is called with it after each example.

    ``plans`` are what examples are drawn from, by default all that the target supports.
    """

    class Bound(EngineMachine):
        """The machine of one campaign."""

        @initialize(plan=plans_for(target) if plans is None else plans)
        def set_up(self, plan: Plan) -> None:
            """Draw the plan and start the engine."""
            self.begin(plan)

    Bound.target = target
    Bound.make_judge = staticmethod(make_judge)
    Bound.ended = staticmethod(ended)
    return Bound
