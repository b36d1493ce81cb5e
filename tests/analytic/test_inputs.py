import pytest
import yaml

from kvtier.analytic.inputs import FIELDS, load_platform
from kvtier.errors import InputError
from kvtier.evidence.labels import Label, Status


def test_every_input_has_papers(platform):
    assert set(platform) == set(FIELDS)
    assert all(entry.source for entry in platform.values())


def test_cxl_latency_is_demoted_and_its_bandwidth_assumed(platform):
    assert platform["cxl_latency"].status is Status.DEMOTED
    assert {platform[f"cxl_bandwidth_{end}"].status for end in ("low", "high")} == {Status.ASSUMPTION}


def test_entries_come_with_their_papers(platform):
    capacity, weights = platform.entries("hbm_capacity", "priority_weights")
    assert (capacity.value, capacity.label, capacity.status) == (192, Label.VENDOR, Status.STANDS)
    assert weights.label is Label.ILLUSTRATIVE


def planted(tmp_path, platform_text, change):
    document = yaml.safe_load(platform_text)
    change(document)
    path = tmp_path / "platform.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


def put(name, key, value):
    return lambda document: document[name].__setitem__(key, value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("mfu"), r"mfu: found no entry"),
        (lambda d: d.__setitem__("turbo", 1), r"turbo: found an unknown entry"),
        (lambda d: d.__setitem__("mfu", 0.4), r"mfu: found 0\.4, expected value, unit, label and source"),
        (lambda d: d["mfu"].pop("source"), r"mfu: found no source"),
        (put("mfu", "colour", "red"), r"mfu\.colour: found an unknown key"),
        (put("hbm_capacity", "value", -192), r"hbm_capacity\.value: found -192, expected a positive finite number"),
        (put("hbm_capacity", "value", float("nan")), r"hbm_capacity\.value: found nan"),
        (put("hbm_capacity", "value", float("inf")), r"hbm_capacity\.value: found inf"),
        (put("hbm_capacity", "value", True), r"hbm_capacity\.value: found True"),
        (put("hbm_capacity", "value", "192"), r"hbm_capacity\.value: found '192'"),
        (put("block_tokens", "value", 16.0), r"block_tokens\.value: found 16\.0, expected a positive whole number"),
        (put("ema_alpha", "value", 1.5), r"ema_alpha\.value: found 1\.5"),
        (put("ema_alpha", "value", 1), r"ema_alpha: found 1, expected a number below 1"),
        (put("hbm_capacity", "unit", "GiB"), r"hbm_capacity\.unit: found 'GiB', expected 'GB'"),
        (put("hbm_capacity", "label", "Rumour"), r"hbm_capacity\.label: found 'Rumour', expected one of Measured"),
        (put("hbm_capacity", "status", "shaky"), r"hbm_capacity\.status: found 'shaky', expected one of stands"),
        (put("hbm_capacity", "source", " "), r"hbm_capacity\.source: found ' '"),
        (put("mfu", "value", []), r"mfu\.value: found \[\], expected a list of one or more"),
        (put("mfu", "value", 0.4), r"mfu\.value: found 0\.4, expected a list"),
        (put("mfu", "value", [0.4, True]), r"mfu\.value: found \[0\.4, True\]"),
        (put("mfu", "value", [0.0]), r"mfu\.value: found 0, expected numbers above 0"),
        (put("example_blocks", "value", [1, -2, 3, 4, 5]), r"example_blocks\.value"),
        (put("example_touches", "value", [1, 2]), r"example_touches\.value: found 2 values, expected 5"),
        (put("softmax_tokens", "value", ["a", "a", "b", "c"]), r"softmax_tokens\.value"),
        (put("softmax_tokens", "value", ["a", 2, "b", "c"]), r"softmax_tokens\.value"),
        (put("priority_weights", "value", [0.5, 0.5]), r"priority_weights\.value: .* expected a list of 3"),
        (put("priority_weights", "value", [0.5, 0.5, 0.2]), r"priority_weights\.value: found a sum of 1\.2"),
        (put("attention_mass", "value", [0.1, 0.1, 0.7]), r"attention_mass\.value: found a sum of 0\.9"),
        (put("attention_positions", "value", [0.5, 0.5, 0.0]), r"attention_positions\.value: found 0, expected numbers above 0"),
        (put("priority_cuts", "value", [0.6, 0.3]), r"priority_cuts\.value: .* expected ascending cuts"),
        (put("cxl_bandwidth_low", "value", 200), r"cxl_bandwidth_low\.value: found 200, expected at most 121"),
        (put("decode_compute", "value", 60), r"decode_compute\.value: found 60, expected less than 50"),
        (put("state_context", "value", 100), r"state_context\.value: found 100, expected whole blocks of 16"),
        (put("state_size", "value", 32), r"state_size\.value: found 32, expected at least 36"),
    ],
)
def test_bad_platform_file_is_refused(tmp_path, platform_text, change, message):
    path = planted(tmp_path, platform_text, change)
    with pytest.raises(InputError, match=message) as caught:
        load_platform(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "found a NoneType, expected a mapping"),
        ("- 1\n", "found a list, expected a mapping"),
        ("a: [1\n", r"line 2: found"),
        ("a: 1\na: 2\n", r"line 2: found key 'a' twice"),
        ("mfu: {value: 1, value: 2}\n", r"line 1: found key 'value' twice"),
    ],
)
def test_file_that_is_no_mapping_is_refused(tmp_path, text, message):
    path = tmp_path / "platform.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        load_platform(path)


def test_unreadable_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"nothing\.yaml: file"):
        load_platform(tmp_path / "nothing.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"a: \xe9\n")
    with pytest.raises(InputError, match="UTF-8"):
        load_platform(tmp_path / "latin.yaml")
