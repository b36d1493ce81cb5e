"""kill -9 at random points: what was acknowledged is there after it, whole, and nothing torn is served."""

import importlib.util
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kvtier.blocks.record import Tier, identity_of
from kvtier.blocks.store import open_store

_spec = importlib.util.spec_from_file_location("crashing", Path(__file__).with_name("crashing.py"))
crashing = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(crashing)


def promises(log):
    """Blocks that the file must have, blocks it may have, and the states of which one must be restored."""
    holds, may_hold, saved, saving = set(), set(), {}, None
    lines = log.read_text().splitlines() if log.exists() else []
    for line in lines:
        word, _, rest = line.partition(" ")
        if word == "holds":
            holds.add(int(rest))
        elif word == "gives":
            holds.discard(int(rest))
            may_hold.add(int(rest))
        elif word == "saves":
            saving = json.loads(rest)
        else:
            saved, saving = saving, None
    return holds, [saved] if saving is None else [saved, saving]


def check(folder):
    """Open what a killed process left; how many blocks were found."""
    holds, states = promises(folder / "log")
    store = open_store(folder, crashing.PAYLOAD_BYTES, *crashing.CAPACITIES)
    found = {number for number in range(crashing.BLOCKS) if store.lookup(identity_of(0, number)) is not None}
    assert holds <= found, f"lost: {holds - found}"
    for number in found:
        assert store.copies(identity_of(0, number)) == (Tier.NVME,)
        assert bytes(store.read(identity_of(0, number))) == crashing.payload(number)
    nvme = store.tiers[Tier.NVME]
    assert len(nvme.torn) <= 1
    assert {torn.identity for torn in nvme.torn}.isdisjoint(identity_of(0, number) for number in holds)
    restored = {number: state and list(state) for number, state in crashing.states(store).items()}
    assert restored in [{number: saved.get(number) for number in restored} for saved in states]
    # What is left works: the torn slot is free again, and the file can be filled.
    nvme.reclaim()
    for number in set(range(crashing.BLOCKS)) - found:
        if nvme.free_slots:
            store.put(identity_of(0, number), crashing.payload(number), Tier.NVME)
    assert nvme.used == crashing.CAPACITIES[Tier.NVME]
    store.close()
    return len(found)


def tries(folder, seeds):
    """Kill, open, check, each in a folder of its own; how many blocks each left."""
    command = [sys.executable, crashing.__file__]
    found = []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        for seed in seeds:
            life = folder / str(seed)
            life.mkdir()
            print(life, seed, file=process.stdin)
            assert process.stdout.readline().strip() == str(int(signal.SIGKILL))
            found.append(check(life))
        process.stdin.close()
    return found


def test_killed_processes_lose_nothing(fast_folder):
    assert sum(tries(fast_folder, range(10))) > 0


@pytest.mark.exhaustive
def test_a_hundred_killed_processes_lose_nothing(fast_folder):
    found = tries(fast_folder, range(100, 200))
    assert sum(count > 0 for count in found) > 50


@pytest.mark.exhaustive
def test_killed_processes_lose_nothing_on_a_disk(tmp_path):
    assert sum(tries(tmp_path, range(1000, 1012))) > 0
