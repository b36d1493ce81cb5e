"""The platform file: what it says of the GB10, and what it refuses."""

from dataclasses import replace
from pathlib import Path

import pytest

from kvtier.analytic.geometry import load_models
from kvtier.errors import InputError
from kvtier.evidence.labels import Label
from kvtier.measure.platform import read_platform

DATA = Path(__file__).resolve().parents[2] / "data"
PLATFORM, MODELS = DATA / "measured/gb10-2026-08-19/platform.yaml", DATA / "inputs/models.csv"


def edited(tmp_path, old, new):
    text = PLATFORM.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path = tmp_path / "platform.yaml"
    path.write_text(text.replace(old, new), encoding="utf-8")
    return path


def test_geometry_gives_the_kv_of_a_token():
    platform = read_platform(PLATFORM)
    assert platform.model.kv_bytes_per_token == 57_344 == 56 * 2**10
    assert platform.model.weight_bytes == platform.model.parameters * platform.model.bytes_per_element
    assert (platform.model.model, platform.dtype, platform.model.label) == ("Qwen2.5-7B", "float16", Label.VENDOR)
    assert platform.bus_gbps == 273
    assert list(platform.run_names) == ["hf", "vllm"]


def test_the_measured_model_is_the_stated_one():
    """The platform file stands alone beside its rows; its shape is that of the table of models."""
    stated = load_models(MODELS)["qwen2_5_7b"]
    assert replace(read_platform(PLATFORM).model, source=stated.source) == stated


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  layers: 28\n", "", r"model\.layers: found no such field, expected the field to be present"),
        ("layers: 28", "layers: 0", r"model\.layers: found 0, expected a whole number of 1 or more"),
        ("layers: 28", "layers: 28.5", r"model\.layers: found 28\.5"),
        ("layers: 28", "layers: true", r"model\.layers: found True"),
        ("label: Vendor specification", "label: Rumour", r"model\.label: found Rumour, expected one of Measured"),
        ("  weight_bytes: 15200000000\n", "", r"model\.weight_bytes: found no such field"),
        ("bus_gbps: 273", "bus_gbps: -273", r"memory\.bus_gbps: found -273, expected a finite number above 0"),
        ("bus_gbps: 273", "bus_gbps: .nan", r"memory\.bus_gbps: found nan"),
        ("bus_gbps: 273", "bus_gbps: 273 GB/s", r"memory\.bus_gbps: found '273 GB/s'"),
        ("name: HF + SDPA", "name:", r"decode\.hf\.name: found None, expected text"),
        ("memory:\n", "memory: [\n", r"line \d+: found"),
    ],
)
def test_refuses_a_field_and_names_it(tmp_path, old, new, message):
    path = edited(tmp_path, old, new)
    with pytest.raises(InputError, match=message) as refused:
        read_platform(path)
    assert str(refused.value).startswith(f"{path}: ")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("content", ["", "- 1\n", "text\n"])
def test_refuses_what_is_not_a_mapping(tmp_path, content):
    path = tmp_path / "platform.yaml"
    path.write_text(content)
    with pytest.raises(InputError, match=r"platform\.yaml: file: found a .*, expected a mapping of named fields"):
        read_platform(path)


def test_refuses_a_missing_file(tmp_path):
    with pytest.raises(InputError, match="expected a readable YAML file"):
        read_platform(tmp_path / "absent.yaml")


def test_refuses_bytes_that_are_not_text(tmp_path):
    path = tmp_path / "platform.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="bytes that are not UTF-8"):
        read_platform(path)
