"""The record of a run: what it says, and what is refused when it is read."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import fake_parts
import numpy as np
import pytest

from kvtier.errors import InputError
from kvtier.kit import record

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Setting:
    size: int


def test_record_is_written_whole_and_read_back(tmp_path):
    written = fake_parts.record_of("stream")
    written.write(tmp_path)
    found = record.read(tmp_path)
    assert found == json.loads((tmp_path / "platform.json").read_text())
    assert found["date"] == "2026-11-30"
    assert found["start"] == "2026-11-30T17:05:00Z"
    assert found["end"] is None
    assert found["bus"] == {"gbps": 100.0, "source": "a data sheet"}
    assert found["machine"]["slug"] == "test_2_cores"
    assert found["parts"]["stream"]["state"] == "not run"


def test_what_a_part_says_of_itself_may_hold_numpy_and_paths(tmp_path):
    written = fake_parts.record_of("stream")
    written.parts["stream"].about = {
        "tokens": np.int64(7),
        "sizes": np.array([1, 2]),
        "file": Path("a/b"),
        "kinds": {"b", "a"},
        "setting": Setting(3),
    }
    written.write(tmp_path)
    about = record.read(tmp_path)["parts"]["stream"]["about"]
    assert about == {"tokens": 7, "sizes": [1, 2], "file": "a/b", "kinds": ["a", "b"], "setting": {"size": 3}}


def test_what_json_cannot_hold_is_refused():
    with pytest.raises(TypeError, match="a object has no place"):
        record.as_json(object())


def test_software_of_this_checkout():
    found = record.software(ROOT)
    assert {"kernel", "python", "libraries", "kvtier"} == set(found)
    assert "numpy" in found["libraries"]
    assert record.software(None)["kvtier"].keys() == {"version"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda document: document.update(format=2), r"format: found 2, expected 1"),
        (lambda document: document.pop("bus"), "bus: found no such field"),
        (lambda document: document.pop("parts"), "parts"),
        (lambda document: document["machine"].pop("slug"), "machine.slug"),
        (lambda document: document["parts"]["stream"].update(state="done"), "parts.stream.state: found done"),
        (lambda document: document["parts"]["stream"].pop("checked"), "parts.stream.checked"),
        (lambda document: document["parts"].update(stream=3), "parts.stream"),
    ],
)
def test_record_that_is_none_is_refused(tmp_path, change, message):
    fake_parts.record_of("stream").write(tmp_path)
    document = json.loads((tmp_path / "platform.json").read_text())
    change(document)
    (tmp_path / "platform.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=message):
        record.read(tmp_path)


def test_folder_without_a_record_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"platform\.json: file"):
        record.read(tmp_path)


def test_bus_may_be_unknown(tmp_path):

    fake_parts.record_of("stream", machine=replace(fake_parts.MACHINE, bus=None)).write(tmp_path)
    assert record.read(tmp_path)["bus"] is None
