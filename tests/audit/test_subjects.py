from kvtier.audit.subjects import name_curve, name_run
from kvtier.simulate import sweeps
from kvtier.simulate.policies import LRU, ema
from kvtier.simulate.sweeps import Run
from kvtier.workload.synthetic import Shape


def test_names_tell_runs_apart():
    planned = [Run("e6ov", ema(0.15, persistent=True), seed=2, hbm_gib=2.5, cxl_gib=16, overlap=True), Run("e2", LRU)]
    first, second = sweeps.replay(planned, 2, Shape(sessions=40, turns=4), 2).iter_rows(named=True)
    assert name_run(first) == "Revision 2 e6ov, zipf, seed 2, EMA a=0.15, persistent, overlap, 2.5 + 16 GiB"
    assert name_run(second) == "Revision 2 e2, zipf, seed 1, LRU, 32 + 512 GiB"
    assert name_curve(second) == "Revision 2 e2, zipf, seed 1, LRU"
