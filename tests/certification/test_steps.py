import pytest

from kvtier.certification import steps
from kvtier.errors import InputError

RULES = {
    "write": {"script": "s/write.py", "inputs": ["results/b", "results/rules.json", "src/x.py", "src/t.j2"], "outputs": ["results/c"]},
    "fit": {"script": "s/fit.py", "inputs": ["data/a.csv", "s/fit.py"], "outputs": ["results/b"]},
    "else": {"script": "s/else.py", "inputs": ["data/a.csv"], "outputs": ["results/d"]},
}


def test_a_step_comes_after_those_it_reads_from_and_others_are_left_out():
    found = steps.steps_behind(RULES, {"fit": "Fits."}, ["results/c"])
    assert [step.rule for step in found] == ["fit", "write"]
    assert found[0].says == "Fits."
    assert found[0].reads == ("data/a.csv",)
    assert found[1].reads == ("results/b",)


def test_a_wanted_file_that_no_rule_makes_is_refused():
    with pytest.raises(InputError, match="results/z: found no rule"):
        steps.steps_behind(RULES, {}, ["results/z"])


def test_a_rule_needs_all_that_it_reads_from():
    assert steps.with_all_it_needs(RULES, "write") == {"write", "fit"}
    with pytest.raises(InputError, match="no such rule"):
        steps.with_all_it_needs(RULES, "draw")
