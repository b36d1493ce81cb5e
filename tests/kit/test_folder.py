"""Folders of runs: names, and what is kept or refused."""

import json
from dataclasses import replace
from datetime import date

import fake_parts
import pytest
from fake_parts import MACHINE, Fake

from kvtier.errors import InputError
from kvtier.kit import folder as folders
from kvtier.kit.campaign import Campaign, plan
from kvtier.measure import kept

NAME = "test_2_cores-2026-11-30"


def test_second_run_of_a_day_has_a_number(tmp_path):
    names = [folders.live_folder(tmp_path / "live", "epyc_2_cores", date(2026, 11, 30)).name for _ in range(3)]
    assert names == ["epyc_2_cores-2026-11-30", "epyc_2_cores-2026-11-30-2", "epyc_2_cores-2026-11-30-3"]


def test_place_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "live").write_text("")
    with pytest.raises(InputError, match="live: folder"):
        folders.live_folder(tmp_path / "live", "epyc", date(2026, 11, 30))


@pytest.fixture
def live(tmp_path):
    """Makes a live run of complete fake parts."""

    def make(machine=MACHINE, quick=False, parts=None, name=NAME):
        folder = tmp_path / "results/live" / name
        folder.mkdir(parents=True)
        parts = parts or [Fake(), Fake("metadata", fake_parts.table_size(), "table_size")]
        record = fake_parts.record_of(*(part.name for part in parts), machine=machine, quick=quick)
        Campaign(folder, record, plan(parts, machine), fake_parts.Watcher([]), fake_parts.no_sensors(tmp_path)).run(parts)
        (folder / "summary.json").write_text("{}")
        return folder

    return make


def test_run_is_moved_with_a_readme_and_without_its_summary(live, tmp_path):
    folder = live()
    record = (folder / "platform.json").read_bytes()
    place = folders.keep(folder, tmp_path)
    assert place == tmp_path / "data/measured" / NAME
    assert not folder.exists()
    assert sorted(path.name for path in place.iterdir()) == ["README.md", "platform.json", "sensors.csv", "stream.csv", "table_size.csv"]
    assert (place / "platform.json").read_bytes() == record
    assert kept.STREAM.read_csv(place / "stream.csv").height == 3
    assert [path.name for path in place.parent.iterdir()] == [NAME]


def test_readme_is_made_from_the_record(live, tmp_path):
    text = (folders.keep(live(), tmp_path) / "README.md").read_text()
    assert text.startswith(f"# {NAME}\n\n**Evidence: Measured.**")
    assert "| memory bus | 100 GB/s: a data sheet |" in text
    assert "| stream | copy | 21 GB/s | 100 GB/s |" in text
    assert "| `stream.csv` | 3 |" in text
    assert "- dtype: float32" in text
    assert "- Not readable: load." in text
    assert "No sensor could be read." in text


def test_foreign_files_of_the_live_folder_stay(live, tmp_path):
    folder = live()
    (folder / "notes.txt").write_text("mine")
    folders.keep(folder, tmp_path)
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]


def refused(folder, root, message):
    before = sorted(path.name for path in folder.iterdir())
    with pytest.raises(InputError, match=message):
        folders.keep(folder, root)
    assert sorted(path.name for path in folder.iterdir()) == before
    measured = root / "data/measured"
    assert not measured.exists() or not [path for path in measured.iterdir() if path.name.startswith(".")]


def test_run_without_a_bus_is_refused(live, tmp_path):
    refused(live(replace(MACHINE, bus=None)), tmp_path, "bus: found no bandwidth")


def test_quick_try_is_refused(live, tmp_path):
    refused(live(quick=True), tmp_path, "quick: found a quick try")


def test_part_that_failed_is_refused(live, tmp_path):
    refused(live(parts=[Fake(), Fake("metadata", ends=fake_parts.GUARD)]), tmp_path, r"parts\.metadata\.state: found failed")


def test_part_that_was_killed_is_refused(live, tmp_path):
    folder = live()
    document = json.loads((folder / "platform.json").read_text())
    document["parts"]["metadata"]["state"] = "running"
    (folder / "platform.json").write_text(json.dumps(document))
    refused(folder, tmp_path, r"parts\.metadata\.state: found running")


def test_name_that_is_taken_is_refused(live, tmp_path):
    (tmp_path / "data/measured" / NAME).mkdir(parents=True)
    refused(live(), tmp_path, "a run that is kept")


def test_folder_with_another_name_is_refused(live, tmp_path):
    refused(live(name="Mine"), tmp_path, "name: found Mine")


def test_table_with_fewer_rows_than_recorded_is_refused(live, tmp_path):
    folder = live()
    lines = (folder / "stream.csv").read_text().splitlines()
    (folder / "stream.csv").write_text("\n".join(lines[:-1]) + "\n")
    refused(folder, tmp_path, r"stream\.csv: rows: found 2, expected 3")


def test_table_that_is_missing_is_refused(live, tmp_path):
    folder = live()
    (folder / "stream.csv").unlink()
    refused(folder, tmp_path, r"stream\.csv: file")


def test_table_that_the_kit_does_not_know_is_refused(live, tmp_path):
    folder = live()
    document = json.loads((folder / "platform.json").read_text())
    document["parts"]["stream"]["tables"] = {"../../secrets.csv": 1}
    (folder / "platform.json").write_text(json.dumps(document))
    refused(folder, tmp_path, r"parts\.stream\.tables: found \.\./\.\./secrets\.csv")


def test_run_without_parts_is_refused(live, tmp_path):
    folder = live()
    document = json.loads((folder / "platform.json").read_text())
    document["parts"] = {}
    (folder / "platform.json").write_text(json.dumps(document))
    refused(folder, tmp_path, "parts: found none")


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        (("bus", "gbps"), float("nan"), r"bus\.gbps: found nan"),
        (("bus", "gbps"), -3.0, r"bus\.gbps: found -3\.0"),
        (("bus",), "fast", "bus: found 'fast'"),
        (("software",), 3, "software: found 3, expected a mapping"),
        (("left_out",), [], "left_out: found"),
        (("parts", "stream", "checked"), 7, r"parts\.stream\.checked: found 7, expected a list"),
    ],
)
def test_record_that_a_build_would_refuse_is_refused(live, tmp_path, keys, value, message):
    folder = live()
    document = at = json.loads((folder / "platform.json").read_text())
    for key in keys[:-1]:
        at = at[key]
    at[keys[-1]] = value
    (folder / "platform.json").write_text(json.dumps(document))
    refused(folder, tmp_path, message)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda lines: [*lines[:-1], lines[-1].rpartition(",")[0] + ",-1.0"],
            r"column seconds, row 3: found -1\.0, expected a value above 0",
        ),
        (lambda lines: [*lines[:-1], lines[-2]], r"stream\.csv: row 3: found a second time of"),
    ],
)
def test_rows_that_a_build_would_refuse_are_refused(live, tmp_path, change, message):
    folder = live()
    lines = (folder / "stream.csv").read_text().splitlines()
    (folder / "stream.csv").write_text("\n".join(change(lines)) + "\n")
    refused(folder, tmp_path, message)


def test_fault_while_files_are_gathered_leaves_the_run_as_it_was(live, tmp_path, monkeypatch):
    folder = live()

    def full(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folders.shutil, "copyfile", full)
    refused(folder, tmp_path, "No space left")
    assert not (tmp_path / "data/measured" / NAME).exists()
