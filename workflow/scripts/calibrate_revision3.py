"""Revision 3: weights, half-life and cut of the published priority, fitted on some seeds, tested on others."""

import polars as pl

from kvtier.evidence import numbers, simulated, statistics
from kvtier.evidence.labels import Label, Status
from kvtier.evidence.numbers import Number
from kvtier.jobs import reporting
from kvtier.simulate import calibration, priority_grid
from kvtier.simulate.calibration import CHOSEN, FIT, Grid
from kvtier.simulate.eviction import half_life_turns
from kvtier.workload.synthetic import Shape

RATE = "blocks read that were in HBM / blocks read in the counted turns; Revision 3, state by session, zipf"
SIGNALS = "P = wR R + wE E + wN N; R = (1 - alpha)^turns since the last read, this project's reading of a recency that was not defined"


def slug(cut: float) -> str:
    return f"cut{cut:g}".replace(".", "") if cut else "no_cut"


def about(row: dict, budget: str) -> str:
    weights = ", ".join(f"{row[name]:.2f}" for name in calibration.WEIGHTS)
    state = "kept" if row["persistent"] else "dropped"
    return f"wR, wE, wN = {weights}, alpha {row['alpha']:g}, score {state} when the session has left; {budget}"


def provisional(key: str, value: float, unit: str, digits: int, definition: str) -> Number:
    return Number(key, value, unit, digits, Label.SIMULATED, definition, status=Status.PROVISIONAL)


def number(chosen: pl.DataFrame, alphas: list[float]) -> list[Number]:
    made = []
    tried = f"fitted, of {', '.join(f'{half_life_turns(alpha):.1f}' for alpha in sorted(alphas, reverse=True))} tried"
    seeds = {half: chosen.filter(pl.col("fitted") == half)["seed"].unique(maintain_order=True).to_list() for half in (True, False)}
    rate, row = {}, {}
    for one in chosen.iter_rows(named=True):
        at = one["hbm_gib"], one["cut"], one["choice"]
        rate.setdefault((*at, one["fitted"]), {})[one["seed"]] = 100 * one["hits"] / one["read"]
        row[at] = one
    for gib, cut in dict.fromkeys(at[:2] for at in row):
        name = f"sim.rev3.calibration.{gib:g}.{slug(cut)}"
        demotion = f"sessions with P below {cut:g} leave HBM after each turn" if cut else "no demotion without pressure"
        budget = f"HBM {gib:g} GiB, {demotion}"
        best, fitted = row[gib, cut, "best"], f"most hits on {simulated.named(dict.fromkeys(seeds[True]))}"
        how = (
            f"the one with the least wN, where only wR : wE orders; {fitted}, {best['tied']} of the settings tried have as many; "
            f"{budget}; {SIGNALS}"
        )
        made += [
            provisional(f"{name}.best_{signal}", best[signal], "", 2, f"weight of {signal} in the priority, fitted: {how}")
            for signal in calibration.WEIGHTS
        ]
        share = best["recency"] / (best["recency"] + best["ema"]) if best["recency"] + best["ema"] else 1.0
        made += [
            provisional(f"{name}.best_recency_share", share, "", 2, f"wR / (wR + wE), which alone orders sessions, fitted: {how}"),
            provisional(
                f"{name}.best_half_life", half_life_turns(best["alpha"]), "turns", 1, f"half-life of score and recency, {tried}: {how}"
            ),
            provisional(f"{name}.best_tied", best["tied"], "", 0, f"points of simplex, half-life and state with the most hits; {budget}"),
        ]
        of = {
            "best": "the fitted priority",
            "published": "the published weights at the published half-life",
            "published_weights": "the published weights at the half-life that fits them best",
            "ema": "all weight on E, at the half-life that fits it best",
            "recency": "all weight on R",
        }
        for choice, title in of.items():
            words = f"hit rate of {title}: {RATE}; {about(row[gib, cut, choice], budget)}"
            for half, key in ((False, "hit"), (True, "fit_hit")) if choice == "best" else ((False, "hit"),):
                seen = "on the seeds that chose it" if half else "on seeds that chose nothing"
                made.append(simulated.mean(f"{name}.{choice}_{key}", rate[gib, cut, choice, half], "%", 2, f"{words}; {seen}"))
        for choice in ("published", "published_weights", "ema", "recency"):
            loss = statistics.paired(rate[gib, cut, "best", False], rate[gib, cut, choice, False])
            words = f"hit rate of the fitted priority minus that of {of[choice]}, seed by seed, on seeds that chose nothing; {budget}"
            made.append(simulated.mean(f"{name}.{choice}_loss", loss, "points", 2, words))
        if cut:
            loss = statistics.paired(rate[gib, 0.0, "best", False], rate[gib, cut, "best", False])
            words = f"hit rate of the priority fitted without demotion minus that fitted with it, seed by seed, on other seeds; {budget}"
            made.append(simulated.mean(f"{name}.demotion_loss", loss, "points", 2, words))
    points = priority_grid.simplex()
    made.append(provisional("sim.rev3.calibration.points", len(points), "", 0, "weights of step 0.05 that sum to 1"))
    for cut in chosen["cut"].unique(maintain_order=True):
        words = (
            f"of these, those that may differ in their hits, {f'with demotion below {cut:g}' if cut else 'without demotion'}: by algebra"
        )
        count = len(priority_grid.distinct(points, cut))
        made.append(provisional(f"sim.rev3.calibration.{slug(cut)}.distinct_points", count, "", 0, words))
    return made


if __name__ == "__main__":
    with reporting(snakemake):
        params = snakemake.params
        grid = Grid(
            Shape(params.sessions, params.turns),
            params.counted_from,
            params.budgets_gib,
            params.alphas,
            params.cuts,
            params.fit_seeds,
            params.test_seeds,
        )
        fitted = calibration.fit(grid)
        chosen = calibration.choose(grid, fitted)
        FIT.write(fitted, snakemake.output.fit)
        CHOSEN.write(chosen, snakemake.output.chosen)
        numbers.write(snakemake.output.numbers, number(chosen, sorted({*params.alphas, calibration.PUBLISHED_ALPHA})), snakemake)
