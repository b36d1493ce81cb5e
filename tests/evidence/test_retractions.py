import copy
import dataclasses
from pathlib import Path

import pytest
import yaml

from kvtier.errors import InputError
from kvtier.evidence import retractions
from kvtier.evidence.labels import Status
from kvtier.files import read_json

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "data/published/retractions.yaml"
LIST = retractions.read(KEPT)
GUARDS = [(entry, guard) for entry in LIST for guard in entry.guards]
SAMPLES = {
    "hit_rate": "it has a 97% hit rate",
    "over_lru": "+25 points over LRU",
    "user_capacity": "a 16× user capacity",
    "access_ratio": "65× per access",
    "ttft": "15.6× faster",
    "host_bandwidth": "against 16.4 GB/s",
    "proposed_bandwidth": "256 GB/s in all",
    "metadata": "640 MiB of metadata",
}


@pytest.fixture(scope="module")
def claims():
    return read_json(ROOT / "data/claims.json")


@pytest.fixture(scope="module")
def ledger():
    return read_json(ROOT / "data/numbers.json")


def test_the_published_copy_holds_no_retracted_value(claims, ledger):
    retractions.check(KEPT, LIST, claims, ledger)


def example_key(pattern: str) -> str:
    """A key that the first alternative of a guard's pattern matches."""
    return {
        r"\.hit$|hit_rate": "sim.new.hit",
        r"^(?!sim\.rev3\.ablation\.)(.*\.)?(ladder|ablation)\.": "ladder.lru",
        "(hf|vllm).*(kv|fixed)_gbps": "measured.new.vllm.kv_gbps",
        r"llama3_70b\.8k": "analytic.kv.llama3_70b.8k.new",
        r"e1\..*recompute_share": "sim.rev2.e1.new.recompute_share",
        "loop.*(ratio|over)": "sim.rev2.e3.loop.over_lru",
    }.get(pattern, f"some.{pattern.split('|')[0]}")


@pytest.mark.parametrize(("entry", "guard"), GUARDS, ids=[f"{entry.id}-{index}" for index, (entry, _) in enumerate(GUARDS)])
def test_no_retracted_value_comes_back_as_a_number(entry, guard, claims, ledger):
    if not guard.keys:
        pytest.skip("guarded in text alone")
    key = example_key(guard.keys)
    for value in retractions.printed_values(claims[guard.claim]["printed"]):
        planted = {**ledger, key: {"value": float(value), "status": str(Status.STANDS)}}
        assert f"{entry.id}: {key}" in retractions.returned(LIST, claims, planted)
        with pytest.raises(InputError, match="found a retracted value in the ledger"):
            retractions.check(KEPT, LIST, claims, planted)
        planted[key]["status"] = str(Status.RETRACTED)
        retractions.check(KEPT, LIST, claims, planted)


@pytest.mark.parametrize("entry", SAMPLES)
def test_no_retracted_value_comes_back_in_a_text(entry):
    text = f"# Results\n\nWhat we found: {SAMPLES[entry]}.\n"
    assert [found.partition(":")[0] for found in retractions.reprinted(LIST, text)] == [entry]
    assert retractions.reprinted(LIST, text.replace("# Results", "# Retracted claims")) == []


def test_a_passage_ends_at_the_next_heading():
    text = "## Retracted\n\n97% hit rate\n\n## Results\n\n97% hit rate\n"
    assert len(retractions.reprinted(LIST, text)) == 1


def test_the_published_documents_reprint_none():
    for name in ("CANONICAL-NUMBERS.md", "README.md"):
        assert retractions.reprinted(LIST, (ROOT / name).read_text(encoding="utf-8")) == [], name


def test_a_retracted_claim_without_an_entry_fails(claims, ledger):
    more = copy.deepcopy(claims)
    more["appendix.new"] = {**claims["retractions.s1.hit_rate"]}
    with pytest.raises(InputError, match=r"appendix\.new: found no entry with this retracted claim"):
        retractions.check(KEPT, LIST, more, ledger)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"guards": []}, r"hit_rate\.guards: found none"),
        ({"guards": [{"claim": "a"}]}, r"hit_rate\.guards: found \{'claim': 'a'\}"),
        ({"guards": [{"claim": "a", "keys": "("}]}, r"hit_rate\.guards\.keys: found .* expected a regular expression"),
        ({"colour": "red"}, r"hit_rate\.colour: found an unknown field"),
    ],
)
def test_a_bad_entry_is_named_with_its_field(tmp_path, change, message):
    entry = yaml.safe_load(KEPT.read_text(encoding="utf-8"))["retractions"][0]
    path = tmp_path / "retractions.yaml"
    path.write_text(yaml.safe_dump({"retractions": [{**entry, **change}]}), encoding="utf-8")
    with pytest.raises(InputError, match=message):
        retractions.read(path)


def test_a_value_that_is_shown_without_a_guard_fails(claims, ledger):
    bare = [dataclasses.replace(LIST[0], shown=(*LIST[0].shown, "retractions.s1.ttft")), *LIST[1:]]
    with pytest.raises(InputError, match=r"hit_rate\.guards: found none for retractions\.s1\.ttft"):
        retractions.check(KEPT, bare, claims, ledger)
