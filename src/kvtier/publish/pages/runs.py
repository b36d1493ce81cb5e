"""Simulated runs that a reader may look up: by revision, HBM budget, policy and whether its state survives eviction."""

from __future__ import annotations

from dataclasses import dataclass

from kvtier.publish import series
from kvtier.publish.facts import Facts

KEPT = "_persistent"
"""End of a policy's name where its state is kept in the same experiment."""


@dataclass(frozen=True)
class Source:
    """An experiment that runs are looked up in.

    Parameters
    ----------
    experiment : str
        As a reader finds it named.
    revision : int
    pattern : str
        Of its hit rates; a policy whose name ends in `KEPT` keeps its state.
    kept : bool
        Whether all of its runs keep the state.
    beside : str
        Stem of the runs of LRU and the optimum that are comparable, the same seeds; empty where there are none.
    budget : str
        Where the pattern does not name it [GiB].
    """

    experiment: str
    revision: int
    pattern: str
    kept: bool = False
    beside: str = ""
    budget: str = ""


SOURCES = (
    Source("e1", 2, "sim.rev2.e1.<budget>.<policy>.hit", beside="sim.rev2.e1.<budget>"),
    Source("grid of α", 2, "sim.rev2.grid.<budget>.<policy>.reset.hit", beside="sim.rev2.e1.<budget>"),
    Source("grid of α", 2, "sim.rev2.grid.<budget>.<policy>.persistent.hit", kept=True, beside="sim.rev2.e1.<budget>"),
    Source("e5", 2, "sim.rev2.e5.persistent.<policy>.hit", kept=True, budget="32"),
    Source("e1", 3, "sim.rev3.e1.<budget>.<policy>.hit", beside="sim.rev3.e1.<budget>"),
    Source("policy family", 3, "sim.rev3.family.<budget>.<policy>.hit", beside="sim.rev3.family.<budget>"),
)
"""Where a combination stands in two experiments, the first has it."""


def runs(facts: Facts) -> list[dict[str, str]]:
    """Each combination that was run, with the keys of its numbers: hit rate, margin over LRU, regret, hit rates of LRU and the optimum.

    Notes
    -----
    The numbers count as shown: their papers come with the page.
    """
    found: dict[tuple[str, ...], dict[str, str]] = {}
    for source in SOURCES:
        for match in facts.ledger.matches(source.pattern):
            budget, name = match.get("budget", source.budget), match["policy"]
            stem = source.pattern.replace("<budget>", budget).replace("<policy>", name).removesuffix(".hit")
            beside = source.beside.replace("<budget>", budget)
            policy, kept = name.removesuffix(KEPT), source.kept or name.endswith(KEPT)
            place = (str(source.revision), budget, policy, "kept" if kept else "dropped")
            keys = {"hit": f"{stem}.hit", "margin": f"{stem}.margin", "regret": f"{stem}.regret"}
            if beside:
                keys |= {"lru": f"{beside}.lru.hit", "optimum": f"{beside}.min.hit"}
            numbers = {field: facts.num(key).ref.removeprefix("n/") for field, key in keys.items() if key in facts.ledger}
            told = dict(zip(("revision", "budget", "policy", "state"), place, strict=True))
            found.setdefault(place, {**told, "experiment": source.experiment, **numbers})
    return sorted(found.values(), key=lambda run: (int(run["revision"]), int(run["budget"]), series.order(run["policy"]), run["state"]))
