"""A number's name, its one rounding, and the ledger that takes each key once."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kvtier.errors import InputError
from kvtier.evidence import numbers
from kvtier.evidence.labels import Label, Status
from kvtier.evidence.numbers import Number
from kvtier.files import sha256


@pytest.fixture
def in_checkout(tmp_path, monkeypatch):
    (tmp_path / "data/measured").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@dataclass
class Job:
    """What a script gets of snakemake."""

    rule: str = "sweep"
    params: dict = field(default_factory=dict)
    input: list = field(default_factory=list)


def number(key="sim.rev2.hit", value=44.184, unit="%", digits=2, label=Label.SIMULATED, definition="hits / reads", **uncertainty):
    return Number(key, value, unit, digits, label, definition, uncertainty, Status.PROVISIONAL)


@pytest.mark.parametrize("key", ["sim.rev2.e1.32.ema015.hit", "a.b", "analytic.kv.llama3_70b.bytes_per_token", "0.1"])
def test_dotted_keys_are_accepted(key):
    assert number(key).key == key


@pytest.mark.parametrize(
    "key", ["", "hit", "sim.", ".hit", "sim..hit", "Sim.hit", "sim hit.x", "sim.hit-rate", "sim.hit\n", "sim.µs", "a.1e-05"]
)
def test_other_keys_are_refused(key):
    with pytest.raises(InputError, match=r"(?s)number: key: found .*, expected dotted lower-case words"):
        number(key)


@pytest.mark.parametrize(
    ("value", "digits", "display"),
    [
        (44.184, 2, "44.18"),
        (44.186, 2, "44.19"),
        (0.0, 1, "0.0"),
        (-2.46, 1, "-2.5"),
        (114_114, 0, "114,114"),
        (1_048_576.4, 0, "1,048,576"),
        (327_680, 1, "327,680.0"),
        (999.96, 1, "1,000.0"),
        (8, 0, "8"),
    ],
)
def test_display_is_rounded_once_with_thousands(value, digits, display):
    assert number(value=value, digits=digits).display == display


def test_written_number_has_its_papers(in_checkout, tmp_path):
    rows = in_checkout / "data/measured/rows.csv"
    rows.write_text("a\n1\n")
    rows = rows.relative_to(in_checkout)
    code = tmp_path / "code.py"
    code.write_text("")
    path = tmp_path / "out/sweep.json"
    numbers.write(path, [number("b.x", lowest_seed=43.9), number("a.x", 3, "", 0)], Job("sweep", {"seeds": [1, 2]}, [str(code), str(rows)]))
    written = json.loads(path.read_text(encoding="utf-8"))
    assert list(written) == ["b.x", "a.x"]
    assert written["b.x"] == {
        "key": "b.x",
        "value": 44.184,
        "unit": "%",
        "label": "Simulated (provisional)",
        "definition": "hits / reads",
        "uncertainty": {"lowest_seed": 43.9},
        "status": "provisional",
        "display": "44.18",
        "rule": "sweep",
        "params": {"seeds": [1, 2]},
        "inputs": {str(rows): sha256(rows)},
    }
    assert path.read_bytes().endswith(b"}\n")


def test_status_goes_into_the_ledger(tmp_path):
    path = tmp_path / "sweep.json"
    numbers.write(path, [Number("a.x", 1, "", 0, Label.ANALYTICAL, "of old", status=Status.WITHDRAWN)], Job())
    assert json.loads(path.read_text(encoding="utf-8"))["a.x"]["status"] == "withdrawn"


def test_order_of_parameters_and_inputs_does_not_show(in_checkout, tmp_path):
    (one := Path("data/measured/one.csv")).write_text("1")
    (two := Path("data/measured/two.csv")).write_text("2")
    numbers.write(tmp_path / "a.json", [number()], Job(params={"x": 1, "y": 2}, input=[one, two]))
    numbers.write(tmp_path / "b.json", [number()], Job(params={"y": 2, "x": 1}, input=[two, one]))
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_key_twice_in_a_fragment(tmp_path):
    path = tmp_path / "sweep.json"
    with pytest.raises(InputError, match=r"sweep\.json: sim\.rev2\.hit: found the key twice, expected one number a key"):
        numbers.write(path, [number(), number(value=1.0)], Job())
    assert not path.exists()


def test_what_cannot_be_written_leaves_the_old_fragment(tmp_path):
    path = tmp_path / "sweep.json"
    numbers.write(path, [number()], Job())
    before = path.read_bytes()
    with pytest.raises(TypeError, match="not JSON serializable"):
        numbers.write(path, [number(value=1.0)], Job(params={"seeds": {1, 2}}))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def write_fragment(path, *keys, rule):
    numbers.write(path, [number(key) for key in keys], Job(rule))
    return path


def test_ledger_is_the_sorted_union(tmp_path):
    first = write_fragment(tmp_path / "one.json", "sim.b", "sim.a", rule="one")
    second = write_fragment(tmp_path / "two.json", "analytic.z", rule="two")
    ledger = numbers.collect([first, second])
    assert list(ledger) == ["analytic.z", "sim.a", "sim.b"]
    assert {key: record["rule"] for key, record in ledger.items()} == {"analytic.z": "two", "sim.a": "one", "sim.b": "one"}
    assert numbers.collect([second, first]) == ledger


def test_key_of_two_rules(tmp_path):
    first = write_fragment(tmp_path / "one.json", "sim.a", rule="one")
    second = write_fragment(tmp_path / "two.json", "sim.b", "sim.a", rule="two")
    with pytest.raises(InputError, match=r"two\.json: sim\.a: found a key that rule one also makes, expected one rule a number"):
        numbers.collect([first, second])


def test_truncated_fragment_names_file_and_line(tmp_path):
    whole = write_fragment(tmp_path / "one.json", "sim.a", rule="one").read_text(encoding="utf-8")
    cut = tmp_path / "cut.json"
    cut.write_text(whole[: whole.index('"unit"')], encoding="utf-8")
    with pytest.raises(InputError, match=r"cut\.json: line 5: found .*, expected complete JSON"):
        numbers.collect([cut])


def test_fragment_that_is_no_mapping(tmp_path):
    path = tmp_path / "list.json"
    path.write_text("[1]")
    with pytest.raises(InputError, match=r"list\.json"):
        numbers.collect([path])


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_value_that_is_no_number(value):
    with pytest.raises(InputError, match=r"sim\.rev2\.hit"):
        number(value=value)


@pytest.mark.parametrize(
    ("read", "label", "passes"),
    [
        ([], Label.SIMULATED, True),
        ([], Label.MEASURED, False),
        (["data/measured/rows.csv"], Label.MEASURED, True),
        (["data/measured/rows.csv", "data/inputs/models.csv"], Label.MEASURED, False),
        (["data/measured/rows.csv", "data/inputs/models.csv"], Label.ANALYTICAL, True),
        (["results/simulate/revision2/e1.parquet"], Label.MEASURED, False),
        (["results/quick/simulate/revision2/e1.parquet"], Label.SIMULATED, True),
        (["data/inputs/models.csv"], Label.SIMULATED, False),
        (["data/inputs/models.csv"], Label.VENDOR, True),
        (["data/inputs/literature/times.csv"], Label.MEASURED, False),
        (["data/inputs/literature/times.csv"], Label.ANALYTICAL, True),
    ],
)
def test_no_number_claims_more_than_what_its_rule_read(in_checkout, read, label, passes):
    for path in map(Path, read):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1")
    job = Job(input=[*read, "src/kvtier/files.py"])
    claim = Number("a.x", 1, "", 0, label, "x", status=Status.PROVISIONAL)
    if passes:
        numbers.write("out.json", [claim], job)
    else:
        with pytest.raises(InputError, match=f"label {re.escape(label)}, expected .* or weaker"):
            numbers.write("out.json", [claim], job)
        assert not Path("out.json").exists()


def test_a_file_of_no_known_kind_has_no_class(in_checkout):
    Path("notes.csv").write_text("1")
    with pytest.raises(InputError, match=r"notes\.csv: evidence class"):
        numbers.write("out.json", [number()], Job(input=["notes.csv"]))


def test_a_simulated_number_does_not_stand(tmp_path):
    with pytest.raises(InputError, match=r"a\.x: found a simulated number that stands, expected one that is provisional or weaker"):
        numbers.write(tmp_path / "out.json", [Number("a.x", 1, "", 0, Label.SIMULATED, "x")], Job())
    assert not (tmp_path / "out.json").exists()
