"""Operations of the store by hand: copies, write-once, state that outlives payloads, restarts, and traffic in closed form."""

import numpy as np
import pytest

from kvtier.blocks import checkpoint
from kvtier.blocks.arena import Arena, Full
from kvtier.blocks.filetier import HEAD_BYTES, HEADER_BYTES, Damaged, FileTier
from kvtier.blocks.record import State, Tier, identity_of
from kvtier.blocks.store import Pinned, Store
from kvtier.errors import InputError
from kvtier.simulate.traffic import Traffic

A, B, C = (identity_of(0, number) for number in range(3))
HBM, CXL, NVME = Tier


def payload(number):
    return bytes([number]) * 64


def traffic(store, unique):
    return Traffic(store.promotions, store.demotions, unique, 0, 0, store.payload_bytes)


def test_a_block_that_round_trips_has_a_traffic_of_two(opened):
    """SPEC §8: down once and up once is the floor, A_traffic = 2, A_read = 1."""
    store = opened(8, 8, 0)
    blocks = [identity_of(1, number) for number in range(8)]
    for number, block in enumerate(blocks):
        store.put(block, payload(number))
    assert [store.demote(block) for block in blocks] == [True] * 8
    assert [store.promote(block) for block in blocks] == [True] * 8
    assert (traffic(store, 8).a_traffic, traffic(store, 8).a_read) == (2, 1)
    assert [bytes(store.read(block)) for block in blocks] == [payload(number) for number in range(8)]
    assert store.moved_bytes(None, HBM) == store.moved_bytes(HBM, CXL) == store.moved_bytes(CXL, HBM) == 8 * 64


@pytest.mark.parametrize("trips", [1, 2, 7])
@pytest.mark.parametrize("below", [CXL, NVME])
def test_a_second_demotion_moves_nothing(opened, trips, below):
    """Each block goes down once, however often it comes back: A_traffic = 1 + trips; an exclusive tier would have 2 · trips."""
    store = opened(4, 4, 4)
    blocks = [identity_of(1, number) for number in range(4)]
    for number, block in enumerate(blocks):
        store.put(block, payload(number))
    for trip in range(trips):
        assert [store.demote(block, below) for block in blocks] == [trip == 0] * 4
        assert [store.lookup(block) for block in blocks] == [below] * 4
        assert [store.promote(block) for block in blocks] == [True] * 4
    assert store.free_demotions == 4 * (trips - 1)
    assert traffic(store, 4).a_traffic == 1 + trips
    exclusive = opened(4, 4, 4)
    for number, block in enumerate(blocks):
        exclusive.put(block, payload(number))
    for _ in range(trips):
        for block in blocks:
            exclusive.demote(block, below)
            exclusive.promote(block)
            exclusive.evict(block, below)
    assert traffic(exclusive, 4).a_traffic == 2 * trips


def test_copies_by_tier(opened):
    store = opened(1, 1, 1)
    store.put(A, payload(1))
    assert (store.lookup(A), store.copies(A)) == (HBM, (HBM,))
    store.demote(A)
    store.promote(A)
    assert store.copies(A) == (HBM, CXL)
    store.demote(A, NVME, source=CXL)
    assert store.copies(A) == (HBM, NVME)
    store.demote(A)
    assert store.copies(A) == (CXL, NVME)
    assert [store.promote(A), store.promote(A)] == [True, False]
    assert store.copies(A) == (HBM, CXL, NVME)
    store.evict(A, CXL)
    assert store.copies(A) == (HBM, NVME)
    store.evict(A)
    assert (store.copies(A), store.lookup(A), store.evictions) == ((), None, 3)
    assert [tier.used for tier in store.tiers] == [0, 0, 0]
    assert (store.lookup(B), store.copies(B)) == (None, ())


def test_promotion_to_the_middle(opened):
    store = opened(1, 1, 1)
    store.put(A, payload(1), NVME)
    assert store.promote(A, CXL)
    assert store.copies(A) == (CXL, NVME)
    with pytest.raises(InputError, match=f"block {B.hex()}: identity: found no record, expected a block that is known"):
        store.promote(B)
    store.evict(A)
    with pytest.raises(InputError, match="copy: found none, expected one in CXL or below"):
        store.promote(A, CXL)


@pytest.mark.parametrize("gone", [False, True], ids=["while it is here", "after its eviction"])
def test_a_payload_is_written_once(opened, gone):
    store = opened(2, 2, 2)
    assert store.put(A, payload(1))
    if gone:
        store.evict(A)
    with pytest.raises(InputError, match=rf"block {A.hex()}: payload: found checksum \w{{16}}, expected \w{{16}}, as first written"):
        store.put(A, payload(2))
    assert store.lookup(A) == (None if gone else HBM)
    # The same bytes again are no violation: they are written where they are missing, and only there.
    assert store.put(A, payload(1)) == gone
    assert store.put(A, payload(1), CXL)
    assert store.copies(A) == (HBM, CXL)
    assert bytes(store.read(A)) == payload(1)


def test_a_payload_of_another_size_is_refused(opened):
    store = opened(1, 0, 0)
    for content in (b"", bytes(63), bytes(65)):
        with pytest.raises(InputError, match=f"payload: found {len(content)} bytes, expected 64 bytes"):
            store.put(A, content)
    assert len(store.table) == 0


def test_payloads_may_be_arrays(opened):
    store = opened(1, 0, 0)
    values = np.arange(32, dtype=np.float16)
    store.put(A, values)
    assert np.frombuffer(store.read(A), dtype=np.float16).tolist() == values.tolist()


def test_full_tiers_change_nothing(opened):
    store = opened(1, 1, 1)
    for block, tier in ((A, HBM), (B, CXL), (C, NVME)):
        store.put(block, payload(tier), tier)
    before = store.table.records.copy()
    for action in (
        lambda: store.put(identity_of(9, 9), payload(9)),
        lambda: store.demote(A),
        lambda: store.demote(A, NVME),
        lambda: store.demote(B),
        lambda: store.promote(B),
        lambda: store.promote(C, CXL),
    ):
        with pytest.raises(Full, match="slots: found 1 of 1 in use"):
            action()
    assert store.table.records.tobytes() == before.tobytes()
    assert [bytes(store.read(block)) for block in (A, B, C)] == [payload(tier) for tier in Tier]


def test_tiers_of_no_blocks(opened):
    store = opened(1, 0, 0)
    store.put(A, payload(1))
    with pytest.raises(Full, match="CXL: slots: found 0 of 0"):
        store.demote(A)
    nothing = opened(0, 0, 0)
    with pytest.raises(Full, match="HBM: slots: found 0 of 0"):
        nothing.put(A, payload(1))


def test_a_demotion_goes_down(opened):
    store = opened(1, 1, 1)
    store.put(A, payload(1), CXL)
    with pytest.raises(InputError, match="demotion: found CXL to HBM, expected a tier below"):
        store.demote(A, HBM)
    with pytest.raises(InputError, match="copy: found none in HBM, expected one there"):
        store.demote(A, source=HBM)
    store.demote(A)
    with pytest.raises(InputError, match="demotion: found NVME to nowhere, expected a tier below"):
        store.demote(A)


def test_pinned_copies_stay(opened):
    store = opened(1, 1, 1)
    store.put(A, payload(1))
    store.demote(A)
    store.promote(A)
    store.pin(A)
    store.pin(A)
    for action in (lambda: store.demote(A), lambda: store.evict(A), lambda: store.evict(A, HBM)):
        with pytest.raises(Pinned, match="pins: found 2, expected 0, for a copy that leaves HBM"):
            action()
    store.evict(A, CXL)
    store.unpin(A)
    store.unpin(A)
    with pytest.raises(InputError, match="pins: found 0, expected 1 or more"):
        store.unpin(A)
    store.evict(A)
    with pytest.raises(InputError, match="copy: found none in HBM"):
        store.pin(A)


def test_state_outlives_the_payload(opened):
    store = opened(1, 1, 1)
    store.put(A, payload(1))
    assert store.state(A) is None
    store.touch(A, 5, 0.25)
    store.touch(A, 9)
    moved = dict(store.moved_blocks)
    assert store.state(A) == State(0.25, 9, 2)
    assert store.moved_blocks == moved
    store.evict(A)
    assert store.state(A) == State(0.25, 9, 2)
    store.touch(A, 11, 0.5)
    assert store.readmit(A, payload(1)) == State(0.5, 11, 3)
    assert store.readmissions == 1
    with pytest.raises(InputError, match="found no record"):
        store.readmit(B, payload(2))
    store.reset(A)
    assert store.state(A) is None
    assert bytes(store.read(A)) == payload(1)


def test_state_may_be_there_before_the_payload(opened):
    store = opened(1, 0, 0)
    store.touch(A, 1, 0.5)
    assert (store.lookup(A), store.absent) == (None, 1)
    store.put(A, payload(1))
    assert (store.state(A), store.absent, store.readmissions) == (State(0.5, 1, 1), 0, 1)


def test_forgotten_blocks_may_be_written_anew(opened):
    store = opened(1, 0, 0)
    store.put(A, payload(1))
    with pytest.raises(InputError, match="copies: found HBM, expected none"):
        store.forget(A)
    store.evict(A)
    store.forget(A)
    assert store.put(A, payload(2))


def test_retention_forgets_those_touched_longest_ago(opened):
    store = opened(1, 0, 0, retained=16)
    blocks = [identity_of(1, number) for number in range(17)]
    for time, block in enumerate(blocks):
        store.put(block, payload(time))
        store.touch(block, (time * 5) % 17)
        store.evict(block)
    # At the seventeenth, down to seven eighths of sixteen.
    assert store.absent == len(store.table) == 14
    assert {(time * 5) % 17 for time, block in enumerate(blocks) if store.state(block)} == set(range(3, 17))


def test_nothing_is_retained_without_room_for_it(opened):
    store = opened(2, 2, 0, retained=0)
    store.put(A, payload(1))
    store.touch(A, 1)
    store.demote(A)
    assert store.state(A) == State(0.0, 1, 1)
    store.evict(A)
    assert (store.state(A), len(store.table), store.absent) == (None, 0, 0)


def test_a_restart_restores_blocks_in_the_file_and_all_state(opened):
    store = opened(2, 2, 2, "one")
    for number, (block, tier) in enumerate(zip((A, B, C), Tier, strict=True)):
        store.put(block, payload(number), tier)
        store.touch(block, number, number / 8)
    store.pin(A)
    store.checkpoint()
    store.touch(A, 99)
    store.close()
    again = opened(2, 2, 2, "one")
    assert [again.lookup(block) for block in (A, B, C)] == [None, None, NVME]
    assert [again.state(block) for block in (A, B, C)] == [State(number / 8, number, 1) for number in range(3)]
    assert bytes(again.read(C)) == payload(2)
    assert again.absent == 2
    assert again.readmit(A, payload(0)) == State(0.0, 0, 1)
    with pytest.raises(InputError, match="as first written"):
        again.put(B, payload(9))


def test_blocks_in_the_file_are_found_without_a_checkpoint(opened):
    store = opened(1, 0, 2, "one")
    store.put(A, payload(1))
    store.touch(A, 1)
    store.demote(A, NVME)
    store.close()
    again = opened(1, 0, 2, "one")
    assert (again.lookup(A), again.state(A), bytes(again.read(A))) == (NVME, None, payload(1))
    with pytest.raises(InputError, match="as first written"):
        again.put(A, payload(2))


def damage(folder, slot):
    at = HEAD_BYTES + slot * (HEADER_BYTES + 64) + HEADER_BYTES
    content = bytearray((folder / "blocks.kv").read_bytes())
    content[at] ^= 1
    (folder / "blocks.kv").write_bytes(content)


def test_a_torn_block_is_reported_and_never_served(opened, fast_folder):
    store = opened(1, 1, 2, "one")
    for number, block in enumerate((A, B)):
        store.put(block, payload(number), NVME)
        store.touch(block, 3, 0.5)
    store.checkpoint()
    store.close()
    damage(fast_folder / "one", 0)
    again = opened(1, 1, 2, "one")
    assert [torn.identity for torn in again.tiers[NVME].torn] == [A]
    assert (again.lookup(A), again.lookup(B)) == (None, NVME)
    with pytest.raises(InputError, match="copy: found none"):
        again.read(A)
    assert again.readmit(A, payload(0)) == State(0.5, 3, 1)


def test_damage_while_open_is_not_served_nor_copied(opened, fast_folder):
    store = opened(1, 1, 1, "one")
    store.put(A, payload(1), NVME)
    with (fast_folder / "one" / "blocks.kv").open("r+b") as file:
        file.seek(HEAD_BYTES + HEADER_BYTES)
        file.write(b"\xff")
    for action in (store.read, store.promote):
        with pytest.raises(Damaged, match=f"slot 0 of block {A.hex()}"):
            action(A)
    assert (store.copies(A), store.tiers[HBM].used) == ((NVME,), 0)


def test_a_file_that_contradicts_the_saved_table_is_reported(opened, fast_folder):
    """The table says what was first written; a file of another run has other bytes under the same identity."""
    for name, number in (("one", 1), ("two", 2)):
        store = opened(1, 1, 1, name)
        store.put(A, payload(number), NVME)
        store.checkpoint()
        store.close()
    (fast_folder / "two" / "blocks.kv").replace(fast_folder / "one" / "blocks.kv")
    again = opened(1, 1, 1, "one")
    (torn,) = again.tiers[NVME].torn
    assert torn.identity == A
    assert "the saved table says" in torn.reason
    assert again.lookup(A) is None


def test_a_state_file_that_does_not_match_is_refused_and_the_file_released(opened, fast_folder):
    store = opened(1, 1, 1, "one")
    store.put(A, payload(1), NVME)
    store.checkpoint()
    store.close()
    state = fast_folder / "one" / "state.kv"
    checkpoint.save(state, store.table.records, 32)
    with pytest.raises(InputError, match=r"state\.kv: payload size: found 32, expected 64"):
        opened(1, 1, 1, "one")
    state.unlink()
    assert opened(1, 1, 1, "one").lookup(A) == NVME


def test_tiers_have_payloads_of_one_size(fast_folder):
    nvme = FileTier(fast_folder / "blocks", 1, 8)
    with pytest.raises(InputError, match="CXL: payload_bytes: found 16, expected 8, as in HBM"):
        Store(Arena("HBM", 1, 8), Arena("CXL", 1, 16), nvme)
    with pytest.raises(InputError, match="store: state_path: found none, expected where to save the table"):
        Store(Arena("HBM", 1, 8), Arena("CXL", 1, 8), nvme).checkpoint()
    nvme.close()


def test_the_cxl_arena_can_be_a_file(opened, fast_folder):
    store = opened(1, 2, 0, cxl_path=fast_folder / "cxl")
    store.put(A, payload(5))
    store.demote(A)
    assert (fast_folder / "cxl").read_bytes() == payload(5) + bytes(64)


def test_bytes_of_state_in_full(opened):
    """64 B of record, 8 B of index, and 4 B for each slot of a tier: 0.0014 % of 5 MiB for a block with one copy."""
    store = opened(2048, 4096, 1024)
    assert store.state_bytes == 2048 * 72 + (2048 + 4096 + 1024) * 4
    share = (72 + 4) / (5 * 2**20)
    assert share == pytest.approx(0.0000145, abs=5e-8)
