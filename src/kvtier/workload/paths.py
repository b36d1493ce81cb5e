"""Requests of a trace as paths in one prefix tree, in columns.

A KV block is of use only with all blocks before it, so a request is a path from the root, and requests with a common prefix share the
first part of their paths. The tree here is the radix tree of a whole trace: an edge is a chain of blocks in which no request ends and no
two requests part. Every path is a whole number of edges, and all blocks of an edge are read by the same requests, always together. A
simulator then handles edges, at a cost that does not depend on how long they are.

A path is known by its last edge, as each edge has one parent: a request costs one integer, however long it is.

Blocks are the trace's own, the last one of a request partly filled where the trace gives it an identity. What counts as the same block is
decided by the whole path: an identity seen under two parents is two blocks here (:mod:`kvtier.audit.traces` counts such cases).
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from kvtier.errors import InputError

Runs = Sequence[Sequence[int]]
"""(first identity, length) of runs of consecutive block identities, root first."""

NONE = -1
"""No edge, no session, no known time."""

MOST = 2**63 - 1
"""Largest integer in a column."""


@dataclass(frozen=True)
class Trace:
    """Requests in order, each a path in the prefix tree of all of them; arrays of int64.

    Parameters
    ----------
    source : str
        Where it was read from, for messages.
    block_tokens : int
        Tokens in a block; 0 where the trace has lengths only, and no edges.
    time_us : ndarray, shape (requests,)
        Arrival since the start of the trace [µs], in order. Where `by_session`: since the start of the request's own session.
    input_tokens, output_tokens : ndarray, shape (requests,)
        Prompt and generated tokens. Generated tokens have no blocks of their own in any of these formats: what a session generates
        appears, if at all, as new blocks of its next request.
    session : ndarray, shape (requests,)
        Number of the session; -1 where the trace names none.
    last_edge : ndarray, shape (requests,)
        Deepest edge of the path; -1 where the path is empty.
    parent : ndarray, shape (edges,)
        Edge above; -1 at the root. A parent's number is smaller. As loaded, edges are numbered as requests first read them, root first.
    blocks : ndarray, shape (edges,)
        Blocks of each edge, at least 1.
    label_offset : ndarray, shape (edges + 1,)
        Runs of edge e are ``label_first[label_offset[e]:label_offset[e + 1]]`` and the same of `label_length`.
    label_first, label_length : ndarray, shape (runs,)
        Identities of the edges' blocks as the trace has them, in runs of consecutive ones. (Identities local to a session are made
        different between sessions by an offset.)
    by_session : bool
        Whether times start anew in each session and requests stand session by session: sessions are then yet to be composed.
    api_us, think_us : ndarray, shape (requests,), optional
        How long the request took, and how long the user waited before it [µs]; -1 where unknown. Only coding-agent sessions have them.
    """

    source: str
    block_tokens: int
    time_us: np.ndarray
    input_tokens: np.ndarray
    output_tokens: np.ndarray
    session: np.ndarray
    last_edge: np.ndarray
    parent: np.ndarray
    blocks: np.ndarray
    label_offset: np.ndarray
    label_first: np.ndarray
    label_length: np.ndarray
    by_session: bool = False
    api_us: np.ndarray | None = None
    think_us: np.ndarray | None = None

    @property
    def requests(self) -> int:
        """How many requests there are."""
        return len(self.time_us)

    @property
    def edges(self) -> int:
        """How many edges the tree has."""
        return len(self.parent)

    @cached_property
    def first_block(self) -> np.ndarray:
        """Blocks that precede each edge on its path, shape (edges,)."""
        return self._sums_above(self.blocks) - self.blocks

    @cached_property
    def depth(self) -> np.ndarray:
        """Edges of the path down to each edge, itself included, shape (edges,)."""
        return self._sums_above(np.ones_like(self.parent))

    def _sums_above(self, values: np.ndarray) -> np.ndarray:
        """Sum of a column over each edge and all edges above it."""
        total, parent = values.tolist(), self.parent.tolist()
        for edge, above in enumerate(parent):
            if above >= 0:
                total[edge] += total[above]
        return np.array(total, dtype=np.int64)

    @cached_property
    def block_number(self) -> np.ndarray:
        """Number of each edge's first block, and one past the last block of all, shape (edges + 1,).

        Blocks of an edge are numbered in order, edges in theirs: as loaded, blocks are numbered as they first appear.
        """
        return np.concatenate([[0], np.cumsum(self.blocks)]).astype(np.int64)

    @cached_property
    def path_offset(self) -> np.ndarray:
        """Edges of request r are ``path_edge[path_offset[r]:path_offset[r + 1]]``; shape (requests + 1,)."""
        depth = np.where(self.last_edge >= 0, self.depth[self.last_edge], 0) if self.edges else np.zeros_like(self.last_edge)
        return np.concatenate([[0], np.cumsum(depth)]).astype(np.int64)

    @cached_property
    def path_edge(self) -> np.ndarray:
        """Edges of all paths, request by request, root first; shape (sum of the depths,)."""
        path = np.empty(self.path_offset[-1], dtype=np.int64)
        place, edge = self.path_offset[1:] - 1, self.last_edge
        while len(edge):
            there = edge >= 0
            place, edge = place[there], edge[there]
            path[place] = edge
            place, edge = place - 1, self.parent[edge]
        return path

    def path(self, request: int) -> np.ndarray:
        """Edges of one request, root first."""
        return self.path_edge[self.path_offset[request] : self.path_offset[request + 1]]

    @cached_property
    def path_blocks(self) -> np.ndarray:
        """Blocks of each request, shape (requests,)."""
        return self.by_request(self.first_block + self.blocks)

    def by_request(self, values: np.ndarray) -> np.ndarray:
        """A column over edges at each request's last edge, 0 where the path is empty; shape (requests,)."""
        if not self.edges:
            return np.zeros_like(self.last_edge)
        return np.where(self.last_edge >= 0, values[self.last_edge], 0)

    @cached_property
    def path_tokens(self) -> np.ndarray:
        """Tokens of each request that have a block, shape (requests,).

        All of the input where the trace gives the partly filled last block an identity, else the input rounded down to whole blocks.
        """
        return np.minimum(self.path_blocks * self.block_tokens, self.input_tokens)

    def tokens_of(self, request: int | np.ndarray, first: int | np.ndarray, stop: int | np.ndarray) -> int | np.ndarray:
        """Real tokens in blocks `first` to ``stop - 1`` of a request's path: the last block may be partly filled."""
        tokens, size = self.path_tokens[request], self.block_tokens
        return np.minimum(stop * size, tokens) - np.minimum(first * size, tokens)

    @cached_property
    def block_accesses(self) -> int:
        """Blocks that all requests read."""
        return int(self.path_blocks.sum())

    @cached_property
    def unique_blocks(self) -> int:
        """Different blocks among them, in the edges that some request reads."""
        return int(self.blocks[self.edges_read].sum())

    @cached_property
    def edges_read(self) -> np.ndarray:
        """Edges that some request reads, ascending. All of them as loaded; fewer where requests were left out."""
        return np.unique(self.path_edge)

    @cached_property
    def new_blocks(self) -> np.ndarray:
        """Blocks of each request that no earlier request has read, shape (requests,): misses under any policy, at any capacity."""
        edges, place = np.unique(self.path_edge, return_index=True)
        request = np.searchsorted(self.path_offset, place, side="right") - 1
        return np.bincount(request, weights=self.blocks[edges], minlength=self.requests).astype(np.int64)

    def label(self, edge: int) -> list[tuple[int, int]]:
        """Runs of an edge's identities, as the trace has them."""
        runs = slice(self.label_offset[edge], self.label_offset[edge + 1])
        return list(zip(self.label_first[runs].tolist(), self.label_length[runs].tolist(), strict=True))

    def select(self, order: np.ndarray, time_us: np.ndarray) -> Trace:
        """Some of the requests, in another order and at other times, over the same tree.

        Parameters
        ----------
        order : ndarray of int, shape (n,)
            Requests to take, in their new order.
        time_us : ndarray of int64, shape (n,)
            When they arrive [µs], in order.

        Raises
        ------
        ValueError
            If the times are not in order.
        """
        if len(order) != len(time_us) or np.any(np.diff(time_us) < 0):
            raise ValueError(f"{len(order)} requests at {len(time_us)} times: expected as many times, in order")
        taken = {
            name: None if column is None else column[order]
            for name in ("input_tokens", "output_tokens", "session", "last_edge", "api_us", "think_us")
            for column in (getattr(self, name),)
        }
        return replace(self, time_us=np.asarray(time_us, dtype=np.int64), by_session=False, **taken)


class Builder:
    """A trace in the making: each request is checked, put into the tree and forgotten but for a few integers.

    Parameters
    ----------
    source : str or Path
        The file, for messages.
    block_tokens : int
        Tokens in a block; 0 where there are lengths only.
    by_session : bool
        Whether times start anew in each session.
    """

    def __init__(self, source: str | Path, block_tokens: int, by_session: bool = False) -> None:
        self.source, self.block_tokens, self.by_session = str(source), block_tokens, by_session
        self._columns = {
            name: array("q") for name in ("time_us", "input_tokens", "output_tokens", "session", "last_edge", "api_us", "think_us")
        }
        self._latest, self._session = 0, NONE
        self._parent, self._blocks = array("q"), array("q")
        # Where in the pool of runs an edge's identities start: run, and identities to skip in it.
        self._run, self._skip = array("q"), array("q")
        self._pool_first, self._pool_length = array("q"), array("q")
        # Edge by its first identity; and by parent and identity, where that identity starts edges under several parents.
        self._child: dict[int, int] = {}
        self._elsewhere: dict[tuple[int, int], int] = {}
        # The request before: its runs, its path, and the blocks down to the end of each edge of it. Its successor often has most of it.
        self._before: Runs = ()
        self._path: list[int] = []
        self._stops: list[int] = []

    def add(
        self,
        where: str,
        time_us: int,
        input_tokens: int,
        output_tokens: int,
        runs: Runs = (),
        session: int = NONE,
        api_us: int = NONE,
        think_us: int = NONE,
    ) -> None:
        """Take one request.

        Parameters
        ----------
        where : str
            Line or row, for messages.
        time_us, input_tokens, output_tokens, session, api_us, think_us : int
            As in :class:`Trace`.
        runs : sequence of (first, length)
            Identities of its blocks, root first; kept until the next request is added, and not changed.

        Raises
        ------
        InputError
            For a negative time or one before the last; an input of no tokens; a negative output; an empty run or an identity out of
            range; more blocks than the input has tokens for.
        """
        if session != self._session and self.by_session:
            self._latest = 0
        self._session = session
        if not 0 <= time_us <= MOST:
            raise InputError(self.source, f"{where}, time", f"{time_us / 1e6:g} s", "0 or more, less than 2^63 µs")
        if time_us < self._latest:
            raise InputError(
                self.source,
                f"{where}, time",
                f"{time_us / 1e6:g} s",
                f"requests in order of time, the last was at {self._latest / 1e6:g} s",
            )
        self._latest = time_us
        if not 1 <= input_tokens <= MOST:
            raise InputError(self.source, f"{where}, input length", input_tokens, "at least 1 token")
        if not 0 <= output_tokens <= MOST:
            raise InputError(self.source, f"{where}, output length", output_tokens, "0 or more tokens")
        blocks = 0
        for first, length in runs:
            if length < 1 or first < 0 or first + length > MOST:
                raise InputError(
                    self.source, f"{where}, blocks", f"{length} identities from {first}", "one or more, each from 0 to 2^63 - 2"
                )
            blocks += length
        if runs:
            most = -(-input_tokens // self.block_tokens)
            if blocks > most:
                raise InputError(
                    self.source,
                    f"{where}, blocks",
                    f"{blocks} blocks for {input_tokens} tokens",
                    f"at most {most} blocks of {self.block_tokens} tokens",
                )
        values = (time_us, input_tokens, output_tokens, session, self._insert(runs), api_us, think_us)
        for column, value in zip(self._columns.values(), values, strict=True):
            column.append(value)

    def _insert(self, runs: Runs) -> int:
        """Put a path into the tree; its last edge."""
        known = bisect_right(self._stops, _common_blocks(self._before, runs))
        path, stops = self._path[:known], self._stops[:known]
        edge, done = (path[-1], stops[-1]) if known else (NONE, 0)
        # Run of the request that is looked at, and identities of it that are done with.
        index, skip = 0, done
        while index < len(runs) and skip >= runs[index][1]:
            skip -= runs[index][1]
            index += 1
        while index < len(runs):
            above, identity = edge, runs[index][0] + skip
            edge = self._child.get(identity, NONE)
            if edge >= 0 and self._parent[edge] != above:
                edge = self._elsewhere.get((above, identity), NONE)
            if edge < 0:
                edge = self._append(above, identity, runs, index, skip)
                index = len(runs)
            else:
                edge, index, skip = self._follow(edge, identity, runs, index, skip)
            done += self._blocks[edge]
            path.append(edge)
            stops.append(done)
        self._before, self._path, self._stops = runs, path, stops
        return edge

    def _follow(self, edge: int, identity: int, runs: Runs, index: int, skip: int) -> tuple[int, int, int]:
        """Go along an edge and a request as far as they agree; the edge down to there, and the place in the request."""
        left, run, skipped = self._blocks[edge], self._run[edge], self._skip[edge]
        while left and index < len(runs):
            first, length = runs[index]
            if self._pool_first[run] + skipped != first + skip:
                break
            same = min(left, self._pool_length[run] - skipped, length - skip)
            left -= same
            skip += same
            skipped += same
            if skip == length:
                index, skip = index + 1, 0
            if skipped == self._pool_length[run]:
                run, skipped = run + 1, 0
        return self._split(edge, left, run, skipped, identity) if left else edge, index, skip

    def _append(self, above: int, identity: int, runs: Runs, index: int, skip: int) -> int:
        """A new edge with what is left of a request."""
        edge = len(self._parent)
        self._name(above, identity, edge)
        self._parent.append(above)
        self._run.append(len(self._pool_first))
        self._skip.append(0)
        blocks = 0
        for first, length in runs[index:]:
            self._pool_first.append(first + skip)
            self._pool_length.append(length - skip)
            blocks += length - skip
            skip = 0
        self._blocks.append(blocks)
        return edge

    def _split(self, edge: int, left: int, run: int, skipped: int, identity: int) -> int:
        """Cut an edge before its last `left` blocks, which keep its number and all that is below; the new edge above the cut."""
        upper = len(self._parent)
        self._parent.append(self._parent[edge])
        self._run.append(self._run[edge])
        self._skip.append(self._skip[edge])
        self._blocks.append(self._blocks[edge] - left)
        if self._child[identity] == edge:
            self._child[identity] = upper
        else:
            self._elsewhere[self._parent[edge], identity] = upper
        self._parent[edge], self._blocks[edge], self._run[edge], self._skip[edge] = upper, left, run, skipped
        self._name(upper, self._pool_first[run] + skipped, edge)
        return upper

    def _name(self, above: int, identity: int, edge: int) -> None:
        if identity in self._child:
            self._elsewhere[above, identity] = edge
        else:
            self._child[identity] = edge

    def trace(self) -> Trace:
        """All requests that were added, edges numbered as they are first read, root first.

        Raises
        ------
        InputError
            If there was none.
        """
        columns = {name: np.array(column, dtype=np.int64) for name, column in self._columns.items()}
        if not len(columns["time_us"]):
            raise InputError(self.source, "file", "no request", "at least one")
        number, order = self._numbering(columns["last_edge"])
        parent = np.array(self._parent, dtype=np.int64)[order]
        columns["last_edge"] = np.append(number, NONE)[columns["last_edge"]]
        for name in ("api_us", "think_us"):
            if np.all(columns[name] == NONE):
                columns[name] = None
        return Trace(
            source=self.source,
            block_tokens=self.block_tokens,
            parent=np.append(number, NONE)[parent],
            blocks=np.array(self._blocks, dtype=np.int64)[order],
            by_session=self.by_session,
            **self._labels(order),
            **columns,
        )

    def _numbering(self, last_edge: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """New number of each edge, and the edges in their new order."""
        number, order, parent = [NONE] * len(self._parent), [], self._parent
        for edge in last_edge.tolist():
            unseen = []
            while edge >= 0 and number[edge] < 0:
                unseen.append(edge)
                number[edge] = 0
                edge = parent[edge]
            for edge in reversed(unseen):
                number[edge] = len(order)
                order.append(edge)
        return np.array(number, dtype=np.int64), np.array(order, dtype=np.int64)

    def _labels(self, order: np.ndarray) -> dict[str, np.ndarray]:
        first, length, offset = array("q"), array("q"), array("q", [0])
        for edge in order.tolist():
            run, skip, left = self._run[edge], self._skip[edge], self._blocks[edge]
            while left:
                here = min(left, self._pool_length[run] - skip)
                first.append(self._pool_first[run] + skip)
                length.append(here)
                left, run, skip = left - here, run + 1, 0
            offset.append(len(first))
        named = {"label_offset": offset, "label_first": first, "label_length": length}
        return {name: np.array(column, dtype=np.int64) for name, column in named.items()}


def _common_blocks(some: Runs, others: Runs) -> int:
    """Blocks that two requests have in common from the root on, as far as their runs are cut alike."""
    common = 0
    for (first, length), (other_first, other_length) in zip(some, others, strict=False):
        if first != other_first:
            break
        common += min(length, other_length)
        if length != other_length:
            break
    return common


def runs_of(identities: Iterable[int]) -> list[tuple[int, int]]:
    """Runs of consecutive identities, in order: ``[4, 5, 6, 9]`` is ``[(4, 3), (9, 1)]``."""
    runs, first, stop = [], None, None
    for identity in identities:
        if identity != stop:
            if first is not None:
                runs.append((first, stop - first))
            first = identity
        stop = identity + 1
    if first is not None:
        runs.append((first, stop - first))
    return runs
