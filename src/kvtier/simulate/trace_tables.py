"""The retained tables of the experiments on public traces, by name."""

from kvtier.frames import Table
from kvtier.simulate import trace_experiments as experiments
from kvtier.simulate import trace_studies as studies

TABLES: dict[str, Table] = {
    "streams": experiments.STREAMS,
    "policies": experiments.POLICIES,
    "alphas": experiments.ALPHA_RUNS,
    "orders": experiments.ORDERS,
    "weights": studies.WEIGHTS,
    "times": studies.TIMES,
    "block_sizes": studies.BLOCK_SIZES,
}
