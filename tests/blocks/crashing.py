"""A process that works with a store until it is killed; started by test_crash.py, one for all tries, each try a fork of it.

Reads lines "folder seed" and answers each with the signal that ended the try. A try writes down in ``log`` what it may rely on, after the
store has returned, and what it is about to give up, before it asks for that.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from kvtier.blocks.record import Tier, identity_of
from kvtier.blocks.store import open_store
from kvtier.blocks.table import Table

PAYLOAD_BYTES = 16_384
CAPACITIES = (6, 4, 10)
BLOCKS = 24


def payload(number):
    return random.Random(number).randbytes(PAYLOAD_BYTES)


def states(store):
    return {str(number): store.state(identity_of(0, number)) for number in range(BLOCKS)}


def die_inside(rng):
    """Die in one of the next calls that change files, before it, in the middle of what it writes, or after it."""
    left = rng.randrange(60)
    pwrite, fdatasync, replace = os.pwrite, os.fdatasync, os.replace

    def due():
        nonlocal left
        left -= 1
        return left < 0

    def die():
        os.kill(os.getpid(), signal.SIGKILL)

    def dying_pwrite(file, content, at):
        if due():
            pwrite(file, bytes(content)[: rng.randrange(len(content) + 1)], at)
            die()
        return pwrite(file, content, at)

    def dying(call):
        def called(*arguments, **options):
            if due():
                if rng.random() < 0.5:
                    call(*arguments, **options)
                die()
            return call(*arguments, **options)

        return called

    os.pwrite, os.fdatasync, os.replace = dying_pwrite, dying(fdatasync), dying(replace)


def work(folder, rng):
    """Demote, promote, evict and save until killed."""
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(*words):
        os.write(log, (" ".join(map(str, words)) + "\n").encode())

    store = open_store(folder, PAYLOAD_BYTES, *CAPACITIES)
    clock = 0
    while True:
        clock += 1
        number = rng.randrange(BLOCKS)
        block = identity_of(0, number)
        for tier in Tier:
            full = [other for other in range(BLOCKS) if tier in store.copies(identity_of(0, other))]
            if len(full) == CAPACITIES[tier]:
                other = rng.choice(full)
                if tier == Tier.NVME:
                    note("gives", other)
                store.evict(identity_of(0, other), tier)
        if store.lookup(block) is None:
            store.put(block, payload(number))
        elif store.lookup(block) != Tier.HBM:
            store.promote(block)
        store.touch(block, clock, clock / 8)
        if rng.random() < 0.8:
            store.demote(block, rng.choice([Tier.CXL, Tier.NVME, Tier.NVME]))
            if Tier.NVME in store.copies(block):
                note("holds", number)
        if rng.random() < 0.1:
            note("saves", json.dumps(states(store)))
            store.checkpoint()
            note("saved")


def main():
    # Machine code is loaded once, and not in every try.
    Table().add(identity_of(0, 0))
    for line in sys.stdin:
        folder, seed = line.split()
        rng = random.Random(int(seed))
        child = os.fork()
        if not child:
            try:
                if int(seed) % 3:
                    die_inside(rng)
                work(Path(folder), rng)
            finally:
                os._exit(1)
        if not int(seed) % 3:
            time.sleep(rng.uniform(0.005, 0.12))
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        print(os.WTERMSIG(status) if os.WIFSIGNALED(status) else f"exit {os.WEXITSTATUS(status)}", flush=True)


if __name__ == "__main__":
    main()
