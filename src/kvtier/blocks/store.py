"""KV blocks in tiers: payloads that are written once and move, and state that stays where it is.

A block may have a copy in several tiers. Since a payload is written once, no copy ever goes stale: a demotion to a tier that has a copy
moves nothing. Policy state (score, time of the last touch, count) is keyed by identity: it is changed in place, no payload moves for
it, and it survives the eviction of the last copy. One thread at a time.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from kvtier.blocks import checkpoint
from kvtier.blocks.arena import Arena
from kvtier.blocks.filetier import FileTier
from kvtier.blocks.record import NO_SLOT, SEALED, State, Tier, checksum
from kvtier.blocks.table import ABSENT, Table
from kvtier.errors import InputError

BELOW = {Tier.HBM: Tier.CXL, Tier.CXL: Tier.NVME}
"""Tier that a demotion goes to unless another is named."""


class Pinned(InputError):
    """A copy in HBM would have gone that a reader needs."""


class Store:
    """The blocks.

    Parameters
    ----------
    hbm, cxl : Arena
    nvme : FileTier
        What it was found to have is taken over; damaged blocks stay in its report, ``nvme.torn``.
    state_path : str or Path, optional
        Where :meth:`checkpoint` saves the table; restored from there if the file exists.
    retained : int, optional
        Most blocks without a copy in any tier whose state is kept. When there are more, those touched longest ago are forgotten, down
        to seven eighths of it. None: all are kept.

    Attributes
    ----------
    moved_blocks : Counter
        Payloads written, by (source, target): two tiers, or None for the source of a payload that was computed. Both are one tier where
        a payload was read, lost its copy and was written back.
    free_demotions : int
        Demotions that moved nothing, as the copy below was there.
    evictions : int
        Copies dropped, by :meth:`evict`.
    readmissions : int
        Payloads written of blocks that were known and had no copy.

    Raises
    ------
    InputError
        If the tiers' payloads differ in size, or the saved table does not match.
    """

    def __init__(
        self, hbm: Arena, cxl: Arena, nvme: FileTier, *, state_path: str | Path | None = None, retained: int | None = None
    ) -> None:
        self.tiers = (hbm, cxl, nvme)
        self.payload_bytes, self.state_path, self.retained = hbm.payload_bytes, state_path, retained
        for tier in self.tiers:
            if tier.payload_bytes != self.payload_bytes:
                raise InputError(tier.name, "payload_bytes", tier.payload_bytes, f"{self.payload_bytes}, as in {hbm.name}")
        self.table = Table(max(hbm.capacity, 1024))
        self.moved_blocks: Counter[tuple[Tier | None, Tier]] = Counter()
        self.free_demotions = self.evictions = self.readmissions = 0
        if state_path is not None and Path(state_path).exists():
            self.table.extend(checkpoint.load(state_path, self.payload_bytes))
        for found in nvme.intact:
            row = self.table.add(found.identity)
            sealed = self.table.flags[row] & SEALED
            if sealed and self.table.checksum[row] != found.checksum:
                nvme.quarantine(found, f"checksum {found.checksum:016x}, the saved table says {int(self.table.checksum[row]):016x}")
                continue
            self._seal(row, found.checksum)
            self.table.slot[row, Tier.NVME] = found.slot
        nvme.intact = []
        self.absent = len(self.table.payload_free())
        """Blocks without a copy in any tier."""

    # Payloads

    def put(self, identity: bytes, payload: bytes | memoryview, tier: Tier = Tier.HBM, source: Tier | None = None) -> bool:
        """Write a block's payload; whether bytes moved, which they do not if the tier has them.

        Parameters
        ----------
        identity : bytes of length 16
        payload : bytes-like of length `payload_bytes`
        tier : Tier
        source : Tier, optional
            Tier from which the payload was read before its copy there had to go; none if it was computed.

        Raises
        ------
        InputError
            If the payload has another size, or the block was written before with other bytes (as told by 64 bits of checksum).
        Full
            If the tier has no free slot. Nothing has changed then.
        """
        payload = memoryview(payload).cast("B")
        if len(payload) != self.payload_bytes:
            raise InputError(f"block {identity.hex()}", "payload", f"{len(payload)} bytes", f"{self.payload_bytes} bytes")
        digest, row = checksum(payload), self.table.row(identity)
        known = row != ABSENT
        if known and self.table.flags[row] & SEALED and self.table.checksum[row] != digest:
            expected = f"{int(self.table.checksum[row]):016x}, as first written: a payload is written once"
            raise InputError(f"block {identity.hex()}", "payload", f"checksum {digest:016x}", expected)
        if known and self.table.slot[row, tier] != NO_SLOT:
            return False
        slot = self.tiers[tier].write(identity, payload, digest)
        row = self.table.add(identity)
        if not known:
            self.absent += 1
        self.readmissions += known and not self._held(row)
        self._seal(row, digest)
        self._place(row, tier, slot)
        self.moved_blocks[source, tier] += 1
        return True

    def readmit(self, identity: bytes, payload: bytes | memoryview, tier: Tier = Tier.HBM, source: Tier | None = None) -> State | None:
        """Write a payload of a block that is known; the policy state with which it goes on, None if it has none.

        Raises
        ------
        InputError, Full
            As :meth:`put`, or if the block is not known.
        """
        self._row(identity)
        self.put(identity, payload, tier, source)
        return self.state(identity)

    def lookup(self, identity: bytes) -> Tier | None:
        """Fastest tier with a copy; None if there is none."""
        row = self.table.row(identity)
        if row == ABSENT:
            return None
        hbm, cxl, nvme = self.table.slot[row].tolist()
        if hbm != NO_SLOT:
            return Tier.HBM
        if cxl != NO_SLOT:
            return Tier.CXL
        return Tier.NVME if nvme != NO_SLOT else None

    def copies(self, identity: bytes) -> tuple[Tier, ...]:
        """All tiers with a copy, fastest first."""
        row = self.table.row(identity)
        if row == ABSENT:
            return ()
        return tuple(tier for tier, slot in zip(Tier, self.table.slot[row].tolist(), strict=True) if slot != NO_SLOT)

    def read(self, identity: bytes) -> memoryview:
        """The payload from the fastest tier that has it: read-only, and right until the copy leaves that tier (pin it to keep it).

        Raises
        ------
        InputError
            If no tier has it.
        Damaged
            If it comes from the file and fails its checksum.
        """
        row = self._row(identity)
        return self._read(row, identity, self._fastest(row, identity, Tier.HBM))

    def promote(self, identity: bytes, to: Tier = Tier.HBM) -> bool:
        """Copy a block up from the fastest tier below that has it, where its copy stays; whether bytes moved.

        Raises
        ------
        InputError, Damaged, Full
            If no tier below has it, as :meth:`read`, or if there is no free slot. Nothing has changed then.
        """
        row = self._row(identity)
        if self.table.slot[row, to] != NO_SLOT:
            return False
        source = self._fastest(row, identity, to)
        self._copy(row, identity, source, to)
        return True

    def demote(self, identity: bytes, to: Tier | None = None, source: Tier | None = None) -> bool:
        """Move a copy down; whether bytes moved, which they do not if the tier below has one.

        Parameters
        ----------
        identity : bytes of length 16
        to : Tier, optional
            By default the next one below `source`.
        source : Tier, optional
            By default the fastest tier with a copy.

        Raises
        ------
        InputError, Pinned, Full
            If there is no such copy, `to` is not below it, a reader needs it, or there is no free slot. Nothing has changed then.
        """
        row = self._row(identity)
        source = self._fastest(row, identity, Tier.HBM) if source is None else self._having(row, identity, source)
        to = BELOW.get(source) if to is None else to
        if to is None or to <= source:
            raise InputError(
                f"block {identity.hex()}", "demotion", f"{source.name} to {'nowhere' if to is None else to.name}", "a tier below"
            )
        self._require_unpinned(row, identity, source)
        moves = self.table.slot[row, to] == NO_SLOT
        if moves:
            self._copy(row, identity, source, to)
        else:
            self.free_demotions += 1
        self._release(row, source)
        return bool(moves)

    def evict(self, identity: bytes, tier: Tier | None = None) -> None:
        """Drop the copy in a tier, by default in all; state stays.

        Raises
        ------
        InputError, Pinned
            If there is no copy, or a reader needs it. Nothing has changed then.
        """
        row = self._row(identity)
        tiers = self.copies(identity) if tier is None else (self._having(row, identity, tier),)
        if not tiers:
            raise InputError(f"block {identity.hex()}", "copies", "none", "at least one to evict")
        self._require_unpinned(row, identity, tiers[0])
        for each in tiers:
            self._release(row, each)
        self.evictions += len(tiers)
        if not self._held(row):
            self.absent += 1
            self._forget_oldest()

    def pin(self, identity: bytes) -> None:
        """Keep the copy in HBM until :meth:`unpin`; pins are counted.

        Raises
        ------
        InputError
            If HBM has no copy.
        """
        row = self._row(identity)
        self._having(row, identity, Tier.HBM)
        self.table.pins[row] += 1

    def unpin(self, identity: bytes) -> None:
        """Take one pin back.

        Raises
        ------
        InputError
            If there is none.
        """
        row = self._row(identity)
        if not self.table.pins[row]:
            raise InputError(f"block {identity.hex()}", "pins", 0, "1 or more")
        self.table.pins[row] -= 1

    # Policy state

    def touch(self, identity: bytes, time: int, score: float | None = None) -> None:
        """Count a touch; the block need not have a copy, nor be known.

        Parameters
        ----------
        identity : bytes of length 16
        time : int
            On the caller's clock.
        score : float, optional
            New score; the old one stays without it.
        """
        table, known = self.table, len(self.table)
        row = table.add(identity)
        self.absent += len(table) - known
        table.count[row] += 1
        table.touched[row] = time
        if score is not None:
            table.score[row] = score

    def state(self, identity: bytes) -> State | None:
        """Policy state; None if the block was not touched since it was first known, or last :meth:`reset`."""
        table, row = self.table, self.table.row(identity)
        if row == ABSENT or not table.count[row]:
            return None
        return State(float(table.score[row]), int(table.touched[row]), int(table.count[row]))

    def reset(self, identity: bytes) -> None:
        """Clear the policy state, as policies do that drop it at an eviction.

        Raises
        ------
        InputError
            If the block is not known.
        """
        row = self._row(identity)
        self.table.score[row] = self.table.touched[row] = self.table.count[row] = 0

    def forget(self, identity: bytes) -> None:
        """Drop the record of a block that has no copy; then it may be written anew with other bytes.

        A table saved before, or the lack of one, then decides whether a restart accepts the new bytes: checkpoint after forgetting.

        Raises
        ------
        InputError
            If the block is not known, or has a copy.
        """
        if self._held(self._row(identity)):
            raise InputError(f"block {identity.hex()}", "copies", ", ".join(tier.name for tier in self.copies(identity)), "none")
        self.table.remove(identity)
        self.absent -= 1

    # The whole

    def moved_bytes(self, source: Tier | None, target: Tier) -> int:
        """Bytes written to a tier from another, or computed for it [B]."""
        return self.moved_blocks[source, target] * self.payload_bytes

    @property
    def promotions(self) -> int:
        """Σ n_b: payloads that moved up (SPEC §8)."""
        return sum(blocks for (source, target), blocks in self.moved_blocks.items() if source is not None and source > target)

    @property
    def demotions(self) -> int:
        """Σ δ_b: payloads that moved down; free demotions are none (SPEC §8)."""
        return sum(blocks for (source, target), blocks in self.moved_blocks.items() if source is not None and source < target)

    @property
    def state_bytes(self) -> int:
        """Bytes of records, index and the tiers' lists of free slots, unused parts included [B]."""
        return self.table.nbytes + sum(tier.nbytes for tier in self.tiers)

    def checkpoint(self) -> None:
        """Save the table, whole or not at all.

        Raises
        ------
        InputError
            If the store was given no place for it.
        """
        if self.state_path is None:
            raise InputError("store", "state_path", "none", "where to save the table")
        checkpoint.save(self.state_path, self.table.records, self.payload_bytes)

    def close(self) -> None:
        """Close the tiers; what was not saved by :meth:`checkpoint` is lost, but for the blocks in the file."""
        for tier in self.tiers:
            tier.close()

    def _row(self, identity: bytes) -> int:
        row = self.table.row(identity)
        if row == ABSENT:
            raise InputError(f"block {identity.hex()}", "identity", "no record", "a block that is known")
        return row

    def _held(self, row: int) -> bool:
        return max(self.table.slot[row].tolist()) != NO_SLOT

    def _seal(self, row: int, digest: int) -> None:
        self.table.checksum[row] = digest
        self.table.flags[row] |= SEALED

    def _having(self, row: int, identity: bytes, tier: Tier) -> Tier:
        if self.table.slot[row, tier] == NO_SLOT:
            raise InputError(f"block {identity.hex()}", "copy", f"none in {tier.name}", "one there")
        return tier

    def _fastest(self, row: int, identity: bytes, above: Tier) -> Tier:
        """Fastest tier with a copy, from `above` down."""
        for tier in Tier:
            if tier >= above and self.table.slot[row, tier] != NO_SLOT:
                return tier
        raise InputError(f"block {identity.hex()}", "copy", "none", f"one in {above.name} or below")

    def _require_unpinned(self, row: int, identity: bytes, source: Tier) -> None:
        if source == Tier.HBM and self.table.pins[row]:
            raise Pinned(f"block {identity.hex()}", "pins", int(self.table.pins[row]), "0, for a copy that leaves HBM")

    def _read(self, row: int, identity: bytes, tier: Tier) -> memoryview:
        return self.tiers[tier].read(int(self.table.slot[row, tier]), identity)

    def _copy(self, row: int, identity: bytes, source: Tier, target: Tier) -> None:
        self.tiers[target].require_free()
        payload = self._read(row, identity, source)
        self._place(row, target, self.tiers[target].write(identity, payload, int(self.table.checksum[row])))
        self.moved_blocks[source, target] += 1

    def _place(self, row: int, tier: Tier, slot: int) -> None:
        self.absent -= not self._held(row)
        self.table.slot[row, tier] = slot

    def _release(self, row: int, tier: Tier) -> None:
        """Free the slot; the record forgets it first, so that a failing medium leaves no block that points to a free slot."""
        slot = int(self.table.slot[row, tier])
        self.table.slot[row, tier] = NO_SLOT
        self.tiers[tier].free(slot)

    def _forget_oldest(self) -> None:
        if self.retained is None or self.absent <= self.retained:
            return
        rows = self.table.payload_free()
        keep = self.retained - self.retained // 8
        for identity in [self.table.identity(row) for row in rows[: len(rows) - keep]]:
            self.table.remove(identity)
        self.absent = keep


def open_store(
    folder: str | Path,
    payload_bytes: int,
    hbm_blocks: int,
    cxl_blocks: int,
    nvme_blocks: int,
    *,
    cxl_path: str | Path | None = None,
    retained: int | None = None,
) -> Store:
    """A store whose file tier and saved table are in a folder; both are restored if they are there.

    Parameters
    ----------
    folder : str or Path
        Gets ``blocks.kv`` and ``state.kv``.
    payload_bytes : int
        Bytes of each payload [B].
    hbm_blocks, cxl_blocks, nvme_blocks : int
        Capacities; 0 is allowed.
    cxl_path : str or Path, optional
        File that the CXL arena maps, for example on a tmpfs; anonymous memory without it.
    retained : int, optional
        See :class:`Store`.

    Raises
    ------
    InputError
        If a file does not match.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    hbm, cxl = Arena("HBM", hbm_blocks, payload_bytes), Arena("CXL", cxl_blocks, payload_bytes, cxl_path)
    nvme = FileTier(folder / "blocks.kv", nvme_blocks, payload_bytes)
    try:
        return Store(hbm, cxl, nvme, state_path=folder / "state.kv", retained=retained)
    except BaseException:
        nvme.close()
        raise
