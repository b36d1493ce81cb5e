"""A bad configuration is refused in one line that names file, key, what was found and what is allowed."""

import re
from pathlib import Path

import pytest

from kvtier import config
from kvtier.errors import InputError

ROOT = Path(__file__).resolve().parents[1]
SCHEMA = ROOT / "workflow/schemas/config.schema.json"
FULL = (ROOT / "config/full.yaml").read_text(encoding="utf-8")


@pytest.fixture
def refusal(tmp_path):
    """The message of a refused configuration, without the folder."""

    def load(text):
        path = tmp_path / "bad.yaml"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(InputError) as refused:
            config.load(path, SCHEMA)
        message = str(refused.value)
        assert "\n" not in message
        assert message.startswith(f"{path}: ")
        return message.removeprefix(f"{path}: ")

    return load


def edited(old, new):
    """The published configuration with the first `old` replaced."""
    assert old in FULL
    return FULL.replace(old, new, 1)


def keys(section):
    return {name: keys(value) if isinstance(value, dict) else None for name, value in section.items()}


def test_full_and_quick_pass_and_have_the_same_keys():
    full, quick = (config.load(ROOT / "config" / name, SCHEMA) for name in ("full.yaml", "quick.yaml"))
    assert keys(full) == keys(quick)
    assert quick["workload"]["turns"] < full["workload"]["turns"] == 2500


def test_schema_forbids_unknown_keys_and_demands_all_of_them(refusal):
    """No section is let off: an unknown key in each, and each key taken away."""
    full = config.load(ROOT / "config/full.yaml", SCHEMA)
    for section, values in full.items():
        assert refusal(edited(f"{section}:\n", f"{section}:\n  extra: 1\n")).startswith(
            f"{section}.extra: found an unknown key with value 1"
        )
        start = FULL.index(f"\n{section}:\n")
        for key in values:
            line = re.search(rf"\n  {key}:[^\n]*", FULL[start:])
            text = FULL[: start + line.start()] + FULL[start + line.end() :]
            if len(values) == 1:
                # Without its only key the section would be nothing, not an empty mapping.
                text = text.replace(f"\n{section}:\n", f"\n{section}: {{}}\n")
            assert refusal(text) == f"{section}.{key}: found nothing, expected the key to be given"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "audit:\n",
            "audits:\n",
            "audits: found an unknown key with value {'sessions': 60, 'turns': 250, 'seed': 1, 'hbm_gib': 8}, "
            "expected only analytic, workload, sweeps, revision1, revision2, revision3, audit, traces",
        ),
        ("[8, 16,", "[-8, 16,", "revision1.budgets_gib.0: found -8, expected at least 1 and at most 65536"),
        ("[8, 16,", "[8, 0,", "revision1.budgets_gib.1: found 0, expected at least 1 and at most 65536"),
        ("[32, 64,", "[70000, 64,", "revision1.cxl_gib.0: found 70000, expected at least 1 and at most 65536"),
        ("hbm_gib: 8", "hbm_gib: '8'", "audit.hbm_gib: found '8', expected of type integer"),
        ("alphas: [0.5,", "alphas: [0,", "revision1.alphas.0: found 0, expected at least 0.0001 and less than 1"),
        ("alphas: [0.5,", "alphas: [1,", "revision1.alphas.0: found 1, expected at least 0.0001 and less than 1"),
        ("alphas: [0.5,", "alphas: [1.5,", "revision1.alphas.0: found 1.5, expected at least 0.0001 and less than 1"),
        ("grid_alphas: [0.3,", "grid_alphas: [-0.3,", "revision2.grid_alphas.0: found -0.3, expected at least 0.0001 and less than 1"),
        ("alphas: [0.5,", "alphas: [.nan,", "revision1.alphas.0: found nan, expected a finite number"),
        ("alphas: [0.5,", "alphas: [.inf,", "revision1.alphas.0: found inf, expected a finite number"),
        ("hbm_gib: 8", "hbm_gib: -.inf", "audit.hbm_gib: found -inf, expected a finite number"),
        ("alphas: [0.5,", "alphas: [half,", "revision1.alphas.0: found 'half', expected of type number"),
        # YAML 1.1 reads 1e-3 as text.
        ("alphas: [0.5,", "alphas: [1e-3,", "revision1.alphas.0: found '1e-3', expected of type number"),
        ("seeds: [1, 2]", "seeds: []", "revision1.seeds: found [], expected this many items at least: 1"),
        ("seeds: [1, 2]", "seeds: [1, 1]", "revision1.seeds: found [1, 1], expected no value twice"),
        ("[8, 16,", "[8, 8.0,", "revision1.budgets_gib: found [8, 8.0, 32, 64, 128], expected no value twice"),
        ("seeds: [1, 2]", "seeds: 1", "revision1.seeds: found 1, expected of type array"),
        ("seeds: [1, 2]", "seeds: [-1, 2]", "revision1.seeds.0: found -1, expected at least 0 and at most 9223372036854775807"),
        ("seeds: [1, 2]", "seeds: [true, 2]", "revision1.seeds.0: found True, expected of type integer"),
        ("sessions: 200", "sessions: true", "workload.sessions: found True, expected of type integer"),
        ("sessions: 200", "sessions: 39", "workload.sessions: found 39, expected at least 40 and at most 1000000"),
        ("sessions: 200", "sessions:", "workload.sessions: found None, expected of type integer"),
        ("turns: 2500", "turns: 2500.5", "workload.turns: found 2500.5, expected of type integer"),
        ("  turns: 250\n", "  turns: 0\n", "audit.turns: found 0, expected at least 1"),
        ("from: 1250", "from: 2500", "workload.counted_from: found 2500, expected less than workload.turns, 2500"),
        ("shards: 1", "shards: 0", "sweeps.shards: found 0, expected at least 1 and at most 1000"),
        ("shards: 1", "shards: -2", "sweeps.shards: found -2, expected at least 1 and at most 1000"),
        ("shards: 1", "shards: 1.5", "sweeps.shards: found 1.5, expected of type integer"),
        ("shards: 1", "shards: two", "sweeps.shards: found 'two', expected of type integer"),
        ("shards: 1", "shards: 1001", "sweeps.shards: found 1001, expected at least 1 and at most 1000"),
        ("from: 1250", "from: 9999", "workload.counted_from: found 9999, expected less than workload.turns, 2500"),
        (
            "  sessions: 200\n  turns: 2500\n  counted_from: 1250\n",
            "  [200, 2500]\n",
            "workload: found [200, 2500], expected of type object",
        ),
    ],
)
def test_bad_value_is_told_in_one_line(refusal, old, new, message):
    assert refusal(edited(old, new)) == message


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("sessions: 200", "sessions: 200\n  sessions: 200", "key 'sessions' twice"),
        ("\naudit:", "\nworkload:", "key 'workload' twice"),
        ("alphas: [0.5, ", "alphas: [0.5, [", "expected ',' or ']', but got '<scalar>'"),
    ],
)
def test_bad_yaml_is_told_with_its_line(refusal, old, new, fault):
    text = edited(old, new)
    assert re.fullmatch(rf"line \d+: found {re.escape(fault)}, expected YAML with unique keys", refusal(text))


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        pytest.param("turns: 2500", "turns: 2500.0", "workload.turns", id="float for int"),
        pytest.param("workload:\n", "1: a\nextra: 2\nworkload:\n", "1", id="unknown keys of two types"),
        pytest.param("workload:\n", "? [1]\n: 2\nworkload:\n", r"line \d+", id="list as key"),
    ],
)
def test_odd_documents_are_told_in_one_line(refusal, old, new, field):
    assert re.match(f"{field}: found ", refusal(edited(old, new)))


def test_missing_section(refusal):
    assert refusal(FULL[: FULL.index("\naudit:")]) == "audit: found nothing, expected the key to be given"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "file: found a NoneType, expected a mapping of named fields"),
        ("- 1\n- 2\n", "file: found a list, expected a mapping of named fields"),
        ("words\n", "file: found a str, expected a mapping of named fields"),
    ],
)
def test_a_file_that_is_no_mapping(refusal, text, message):
    assert refusal(text) == message


def test_a_truncated_file_never_passes(refusal):
    """Cut at any byte but the last line's end: broken YAML, a missing key or a cut value; one line each."""
    end = len(FULL.rstrip()) - 1
    for cut in range(0, end, 7):
        refusal(FULL[:cut])


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"none\.yaml: file: found No such file or directory, expected a readable YAML file"):
        config.load(tmp_path / "none.yaml", SCHEMA)
