"""Random operations against dictionaries: every payload byte, every field of state, every counter, restarts included."""

import copy
import random
import shutil
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from kvtier.blocks.arena import Full
from kvtier.blocks.record import Tier, identity_of
from kvtier.blocks.store import Pinned, open_store
from kvtier.errors import InputError

PAYLOAD_BYTES = 24
HBM, CXL, NVME = Tier
FOLDER = "/dev/shm" if Path("/dev/shm").is_dir() else None

BLOCKS = st.integers(0, 11)
TIERS = st.sampled_from(Tier)


def payload(block, variant=0):
    return random.Random(block * 1000 + variant).randbytes(PAYLOAD_BYTES)


class Known:
    """What the dictionary has of a block."""

    def __init__(self):
        self.written, self.tiers, self.pins = None, set(), 0
        self.score, self.touched, self.count = 0.0, 0, 0


class Operations:
    """Each operation is done by the store and by the model, which says beforehand what has to come out."""

    def start(self, capacities, retained):
        self.folder = Path(tempfile.mkdtemp(dir=FOLDER, prefix="kvtier-model-"))
        self.capacities, self.retained = dict(zip(Tier, capacities, strict=True)), retained
        self.known, self.saved = {}, {}
        self.operations = 0
        self.open()

    def open(self):
        self.store = open_store(self.folder, PAYLOAD_BYTES, *self.capacities.values(), retained=self.retained)
        self.moved, self.free, self.evictions, self.readmissions = Counter(), 0, 0, 0

    def full(self, tier):
        return sum(tier in known.tiers for known in self.known.values()) >= self.capacities[tier]

    def refused(self, action, *, kind=InputError):
        with pytest.raises(InputError) as refusal:
            action()
        assert type(refusal.value) is kind, refusal.value
        assert "\n" not in str(refusal.value)

    def put(self, block, tier, variant):
        self.operations += 1
        content, known = payload(block, variant), self.known.get(block)
        action = lambda: self.store.put(identity_of(0, block), content, tier)  # noqa: E731
        if known and known.written not in (None, content):
            return self.refused(action)
        if known and tier in known.tiers:
            assert action() is False
            return None
        if self.full(tier):
            return self.refused(action, kind=Full)
        assert action() is True
        self.readmissions += known is not None and not known.tiers
        known = self.known.setdefault(block, Known())
        known.written = content
        known.tiers.add(tier)
        self.moved[None, tier] += 1
        return None

    def promote(self, block, to):
        self.operations += 1
        known = self.known.get(block)
        action = lambda: self.store.promote(identity_of(0, block), to)  # noqa: E731
        if known and to in known.tiers:
            assert action() is False
            return None
        below = [tier for tier in sorted(known.tiers) if tier > to] if known else []
        if not below:
            return self.refused(action)
        if self.full(to):
            return self.refused(action, kind=Full)
        assert action() is True
        known.tiers.add(to)
        self.moved[below[0], to] += 1
        return None

    def demote(self, block, to, source):
        self.operations += 1
        known = self.known.get(block)
        action = lambda: self.store.demote(identity_of(0, block), to, source)  # noqa: E731
        if not known or not known.tiers or (source is not None and source not in known.tiers):
            return self.refused(action)
        source = min(known.tiers) if source is None else source
        to = {HBM: CXL, CXL: NVME}.get(source) if to is None else to
        if to is None or to <= source:
            return self.refused(action)
        if source == HBM and known.pins:
            return self.refused(action, kind=Pinned)
        if to not in known.tiers and self.full(to):
            return self.refused(action, kind=Full)
        moves = to not in known.tiers
        assert action() is moves
        known.tiers = known.tiers - {source} | {to}
        self.moved[source, to] += moves
        self.free += not moves
        return None

    def evict(self, block, tier):
        self.operations += 1
        known = self.known.get(block)
        action = lambda: self.store.evict(identity_of(0, block), tier)  # noqa: E731
        gone = (known.tiers if tier is None else known.tiers & {tier}) if known else set()
        if not gone:
            return self.refused(action)
        if HBM in gone and known.pins:
            return self.refused(action, kind=Pinned)
        action()
        self.evictions += len(gone)
        known.tiers = known.tiers - gone
        if not known.tiers:
            self.forget_oldest()
        return None

    def forget_oldest(self):
        absent = sorted((known.touched, block) for block, known in self.known.items() if not known.tiers)
        if self.retained is not None and len(absent) > self.retained:
            for _, block in absent[: len(absent) - (self.retained - self.retained // 8)]:
                del self.known[block]

    def touch(self, block, time, score):
        self.operations += 1
        self.store.touch(identity_of(0, block), time, score)
        known = self.known.setdefault(block, Known())
        known.touched, known.count = time, known.count + 1
        known.score = known.score if score is None else score

    def reset(self, block):
        self.operations += 1
        if block not in self.known:
            return self.refused(lambda: self.store.reset(identity_of(0, block)))
        self.store.reset(identity_of(0, block))
        known = self.known[block]
        known.score, known.touched, known.count = 0.0, 0, 0
        return None

    def forget(self, block):
        self.operations += 1
        known = self.known.get(block)
        if known is None or known.tiers:
            return self.refused(lambda: self.store.forget(identity_of(0, block)))
        self.store.forget(identity_of(0, block))
        del self.known[block]
        return None

    def pin(self, block, up):
        self.operations += 1
        known = self.known.get(block)
        action = lambda: (self.store.pin if up else self.store.unpin)(identity_of(0, block))  # noqa: E731
        if known is None or (HBM not in known.tiers if up else not known.pins):
            return self.refused(action)
        action()
        known.pins += 1 if up else -1
        return None

    def checkpoint(self):
        self.operations += 1
        self.store.checkpoint()
        self.saved = copy.deepcopy(self.known)

    def restart(self):
        self.operations += 1
        self.store.close()
        in_file = {block: known.written for block, known in self.known.items() if NVME in known.tiers}
        self.known = copy.deepcopy(self.saved)
        for known in self.known.values():
            known.tiers, known.pins = set(), 0
        contradicted = set()
        for block, content in in_file.items():
            known = self.known.setdefault(block, Known())
            if known.written not in (None, content):
                contradicted.add(block)
            else:
                known.written = content
                known.tiers = {NVME}
        self.open()
        nvme = self.store.tiers[NVME]
        assert {torn.identity for torn in nvme.torn} == {identity_of(0, block) for block in contradicted}
        nvme.reclaim()

    def check_block(self, block):
        identity, known = identity_of(0, block), self.known.get(block)
        tiers = tuple(sorted(known.tiers)) if known else ()
        assert self.store.copies(identity) == tiers
        assert self.store.lookup(identity) == (tiers[0] if tiers else None)
        assert self.store.state(identity) == ((known.score, known.touched, known.count) if known and known.count else None)
        row = self.store.table.row(identity)
        assert (row >= 0) == (known is not None)
        if known:
            assert self.store.table.pins[row] == known.pins
            # The fastest copy as a reader gets it; the others where they lie.
            assert not tiers or bytes(self.store.read(identity)) == known.written
            for tier in tiers:
                assert bytes(self.store.tiers[tier].read(int(self.store.table.slot[row, tier]), identity)) == known.written

    def check(self):
        for block in range(12):
            self.check_block(block)
        store = self.store
        assert len(store.table) == len(self.known)
        assert store.absent == sum(not known.tiers for known in self.known.values())
        assert +store.moved_blocks == +self.moved
        assert (store.free_demotions, store.evictions, store.readmissions) == (self.free, self.evictions, self.readmissions)
        for tier in Tier:
            used = [known for known in self.known.values() if tier in known.tiers]
            assert store.tiers[tier].used == len(used)
        records = store.table.records
        assert not records["reserved"].tobytes().strip(b"\0")

    def stop(self):
        self.store.close()
        shutil.rmtree(self.folder)


class StoreMachine(Operations, RuleBasedStateMachine):
    """One operation a rule, so that a failure shrinks to a few."""

    @initialize(capacities=st.tuples(*[st.integers(0, 4)] * 3), retained=st.sampled_from([None, None, 0, 3, 9]))
    def begin(self, capacities, retained):
        self.start(capacities, retained)

    put_one = rule(block=BLOCKS, tier=TIERS, variant=st.sampled_from([0, 0, 0, 1]))(lambda self, **drawn: self.put(**drawn))
    promote_one = rule(block=BLOCKS, to=TIERS)(lambda self, **drawn: self.promote(**drawn))
    demote_one = rule(block=BLOCKS, to=st.none() | TIERS, source=st.none() | TIERS)(lambda self, **drawn: self.demote(**drawn))
    evict_one = rule(block=BLOCKS, tier=st.none() | TIERS)(lambda self, **drawn: self.evict(**drawn))
    touch_one = rule(block=BLOCKS, time=st.integers(-(2**63), 2**63 - 1), score=st.none() | st.floats(allow_nan=False))(
        lambda self, **drawn: self.touch(**drawn)
    )
    reset_one = rule(block=BLOCKS)(lambda self, **drawn: self.reset(**drawn))
    forget_one = rule(block=BLOCKS)(lambda self, **drawn: self.forget(**drawn))
    pin_one = rule(block=BLOCKS, up=st.booleans())(lambda self, **drawn: self.pin(**drawn))
    save = rule()(lambda self: self.checkpoint())
    reopen = rule()(lambda self: self.restart())

    @invariant()
    def all_is_as_it_should_be(self):
        if hasattr(self, "store"):
            self.check()

    def teardown(self):
        if hasattr(self, "store"):
            self.stop()


class LongStoreMachine(StoreMachine):
    """The same, with a rule of many operations from one seed: each is checked on its block, and all of it now and then."""

    burst_operations = 200
    operations_in_all = 0

    @rule(seed=st.integers(0, 2**32))
    def burst(self, seed):
        rng = random.Random(seed)
        # Long enough for tiers to fill, and to be full of old and new blocks.
        actions = {
            "put": 30, "promote": 15, "demote": 25, "evict": 8, "touch": 15, "reset": 1, "forget": 1, "pin": 1, "unpin": 2,
            "checkpoint": 0.5, "restart": 0.3,
        }  # fmt: skip
        for step, name in enumerate(rng.choices(list(actions), list(actions.values()), k=self.burst_operations)):
            block, tier = rng.randrange(12), rng.choice(list(Tier))
            maybe = rng.choice([None, tier])
            match name:
                case "put":
                    self.put(block, tier, rng.choice([0] * 19 + [1]))
                case "promote":
                    self.promote(block, rng.choice([HBM, HBM, CXL]))
                case "demote":
                    self.demote(block, maybe, rng.choice([None, None, *Tier]))
                case "evict":
                    self.evict(block, maybe)
                case "touch":
                    self.touch(block, rng.randrange(1000), rng.choice([None, rng.random()]))
                case "reset" | "forget":
                    getattr(self, name)(block)
                case "pin" | "unpin":
                    self.pin(block, name == "pin")
                case _:
                    getattr(self, name)()
            self.check_block(block)
            if step % 20 == 0:
                self.check()

    def teardown(self):
        if hasattr(self, "store"):
            type(self).operations_in_all += self.operations
        super().teardown()


QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def test_random_operations_keep_every_byte_and_every_state():
    run_state_machine_as_test(
        StoreMachine,
        settings=settings(
            max_examples=25, stateful_step_count=30, derandomize=True, deadline=None, database=None, suppress_health_check=QUIET
        ),
    )


def test_bursts_of_random_operations():
    run_state_machine_as_test(
        LongStoreMachine,
        settings=settings(
            max_examples=4, stateful_step_count=10, derandomize=True, deadline=None, database=None, suppress_health_check=QUIET
        ),
    )


@pytest.mark.exhaustive
def test_a_million_random_operations():
    class Machine(LongStoreMachine):
        burst_operations = 1000

    while Machine.operations_in_all < 10**6:
        run_state_machine_as_test(
            Machine,
            settings=settings(max_examples=40, stateful_step_count=60, deadline=None, database=None, suppress_health_check=QUIET),
        )
    print(f"{Machine.operations_in_all} operations")
