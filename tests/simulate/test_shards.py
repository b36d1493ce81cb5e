"""Into however many parts a sweep is dealt out, the same bytes come back; a part that is not of the sweep is refused."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from kvtier import config
from kvtier.errors import InputError
from kvtier.evidence import provenance
from kvtier.simulate import shards, tables

ROOT = Path(__file__).resolve().parents[2]
QUICK = config.load(ROOT / "config/quick.yaml", ROOT / "workflow/schemas/config.schema.json")


def settings(sweep):
    """As the rule has them: alpha grid and workloads say `alphas`, `budgets_gib` and `seeds` like the others."""
    section = QUICK["revision1" if "revision1" in sweep else "revision2"]
    own = {"seeds": section["workload_seeds"]} if sweep.endswith("workloads") else {}
    if sweep.endswith("grid"):
        own = {name: section[f"grid_{name}"] for name in ("alphas", "budgets_gib", "seeds")}
    return {**QUICK["workload"], **section, **own}


def dealt_out(folder, sweep, count):
    paths = [folder / f"{shard}-of-{count}.parquet" for shard in range(1, count + 1)]
    for shard, path in enumerate(paths, 1):
        tables.RUNS.write(shards.replay(sweep, settings(sweep), shard, count), path)
    return paths


@pytest.mark.parametrize("sweep", shards.PLANS)
def test_bytes_do_not_depend_on_the_number_of_shards(sweep, tmp_path):
    whole, gathered = tmp_path / "whole.parquet", tmp_path / "gathered.parquet"
    tables.RUNS.write(shards.runs_of(sweep, settings(sweep), []), whole)
    for count in (1, 2, 3):
        paths = dealt_out(tmp_path, sweep, count)
        tables.RUNS.write(shards.runs_of(sweep, settings(sweep), paths), gathered)
        assert gathered.read_bytes() == whole.read_bytes()


def test_more_shards_than_runs(tmp_path):
    sweep = "sweep_revision1_alphas"
    paths = dealt_out(tmp_path, sweep, 6)
    assert [tables.RUNS.read_parquet(path).height for path in paths] == [1, 1, 1, 1, 0, 0]
    assert shards.gather(sweep, settings(sweep), paths).equals(shards.replay(sweep, settings(sweep)))


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ([2, 1, 3], r"2-of-3\.parquet: row 1: found .*ema.*0\.15.*, expected .*ema.*0\.5, .*by sweep_revision1_alphas"),
        ([1, 2], r"1-of-3\.parquet: row 2: found .*0\.01.*, expected .*0\.05"),
        ([1, 1, 3], r"1-of-3\.parquet: row 1: found .*0\.5.*, expected .*0\.15"),
        ([1, 2, 3, 3], r"1-of-3\.parquet: row 2: found .*0\.01.*, expected no more runs"),
    ],
    ids=["out of order", "one left out", "one twice", "one too many"],
)
def test_shards_that_are_not_the_sweep_are_refused(tmp_path, held, said):
    sweep = "sweep_revision1_alphas"
    paths = dealt_out(tmp_path, sweep, 3)
    with pytest.raises(InputError, match=said) as refused:
        shards.gather(sweep, settings(sweep), [paths[shard - 1] for shard in held])
    assert "\n" not in str(refused.value)


def test_a_truncated_shard_is_named(tmp_path):
    sweep = "sweep_revision1_alphas"
    paths = dealt_out(tmp_path, sweep, 2)
    paths[1].write_bytes(paths[1].read_bytes()[:-100])
    with pytest.raises(InputError, match=r"2-of-2\.parquet: file: found .*, expected a parquet table; delete it and build again"):
        shards.gather(sweep, settings(sweep), paths)


def test_a_number_does_not_name_the_shards_of_its_own_sweep(tmp_path):
    class Inputs(list):
        shards = (str(tmp_path / "1-of-1.parquet"),)

    (tmp_path / "models.csv").write_text("a\n")
    job = SimpleNamespace(rule="sweep", params={}, input=Inputs([str(tmp_path / "models.csv"), *Inputs.shards]))
    assert list(provenance.of_job(job)["inputs"]) == [str(tmp_path / "models.csv")]
