"""A run of parts: what is refused before it starts, and what is on disk however it ends."""

import json
from dataclasses import replace
from pathlib import Path

import fake_parts
import polars as pl
import pytest
from fake_parts import GUARD, MACHINE, STREAM_ROWS, Fake

from kvtier.kit.campaign import Campaign, DoesNotFit, Plan, existing, plan, scratch_folders
from kvtier.kit.machine import Accelerator, Bus
from kvtier.kit.parts import Step
from kvtier.kit.sensors import Sensors
from kvtier.measure import kept
from kvtier.units import GIB


@pytest.fixture
def campaign(tmp_path):
    def of(*parts):
        record = fake_parts.record_of(*(part.name for part in parts))
        folder = tmp_path / "run"
        folder.mkdir(exist_ok=True)
        return Campaign(folder, record, plan(parts, MACHINE), fake_parts.Watcher([]), fake_parts.no_sensors(tmp_path))

    return of


def second(**settings):
    return Fake("metadata", fake_parts.table_size(), "table_size", **settings)


def record_in(folder):
    return json.loads((folder / "platform.json").read_text())


def test_tables_record_and_sensors_are_on_disk_when_a_part_ends(campaign):
    parts = [Fake(), second()]
    run = campaign(*parts)
    assert run.run(parts) == []
    found = record_in(run.folder)
    assert found["format"] == 1
    assert found["end"] is not None
    assert [part["state"] for part in found["parts"].values()] == ["complete", "complete"]
    assert found["parts"]["stream"]["tables"] == {"stream.csv": 3}
    assert found["parts"]["stream"]["about"] == {"repetitions": 3, "dtype": "float32"}
    assert found["parts"]["stream"]["checked"] == [{"subject": "copy", "value": 21.0, "bound": 100.0, "unit": "GB/s"}]
    assert kept.STREAM.read_csv(run.folder / "stream.csv").equals(kept.STREAM.check(STREAM_ROWS))
    assert (run.folder / "sensors.csv").exists()
    assert "load" in found["not_readable"]
    assert sorted(path.name for path in run.folder.iterdir()) == ["platform.json", "sensors.csv", "stream.csv", "table_size.csv"]


def test_watcher_is_told_in_order(campaign):
    part = Fake()
    run = campaign(part)
    run.run([part])
    assert run.watcher.told == [
        ("starts", "stream"),
        ("at", "stream", 0.0),
        ("at", "stream", 0.5),
        ("ends", "stream", "complete", "3 rows in stream.csv"),
    ]


def test_guard_that_says_no_fails_its_part_alone(campaign):
    parts = [Fake(ends=GUARD), second()]
    run = campaign(*parts)
    assert run.run(parts) == [f"stream: {GUARD}"]
    found = record_in(run.folder)["parts"]
    assert [part["state"] for part in found.values()] == ["failed", "complete"]
    assert found["stream"]["why"] == str(GUARD)
    assert not (run.folder / "stream.csv").exists()


def test_interrupt_leaves_complete_parts_and_says_which(campaign):
    parts = [Fake(), second(ends=KeyboardInterrupt())]
    run = campaign(*parts)
    with pytest.raises(KeyboardInterrupt):
        run.run(parts)
    found = record_in(run.folder)
    assert [part["state"] for part in found["parts"].values()] == ["complete", "interrupted"]
    assert found["end"] is not None
    assert kept.STREAM.read_csv(run.folder / "stream.csv").height == 3


def test_fault_of_a_part_is_recorded_and_raised(campaign):
    parts = [Fake(ends=MemoryError("no room")), second()]
    run = campaign(*parts)
    with pytest.raises(MemoryError):
        run.run(parts)
    assert record_in(run.folder)["parts"]["stream"]["why"] == "MemoryError: no room"
    assert record_in(run.folder)["parts"]["metadata"]["state"] == "not run"


def test_record_of_a_killed_run_says_that_the_part_was_running(campaign):
    """What lies on disk while a part runs is what a kill would leave."""
    seen = {}

    class Looks(Fake):
        def run(self, machine, progress):
            seen.update(record_in(run.folder)["parts"])
            return super().run(machine, progress)

    parts = [second(), Looks()]
    run = campaign(*parts)
    run.run(parts)
    assert [part["state"] for part in seen.values()] == ["complete", "running"]


@pytest.mark.parametrize(
    ("part", "why"),
    [
        (Fake(table="speed"), "table: found speed"),
        (Fake(table="sensors"), "table: found sensors"),
        (Fake(rows=STREAM_ROWS.clear()), "no rows"),
        (Fake(rows=STREAM_ROWS.drop("seconds")), "column seconds"),
        (Fake(rows=STREAM_ROWS.with_columns(seconds=pl.lit(float("nan")))), "column seconds"),
    ],
)
def test_rows_that_are_none_fail_their_part(campaign, part, why):
    run = campaign(part)
    assert why in run.run([part])[0]
    assert not (run.folder / "stream.csv").exists()


def test_table_of_another_part_is_not_overwritten(campaign):
    parts = [Fake(), Fake("movement")]
    run = campaign(*parts)
    assert "that no other part has written" in run.run(parts)[0]
    assert record_in(run.folder)["parts"]["stream"]["state"] == "complete"


def test_sensors_of_all_parts_are_in_one_file(campaign, tmp_path):
    (tmp_path / "root/proc").mkdir(parents=True)
    (tmp_path / "root/proc/loadavg").write_text("0.5 0 0")
    parts = [Fake(), second()]
    run = campaign(*parts)
    run.sensors = Sensors(tmp_path / "root", lambda: None)
    run.run(parts)
    rows = kept.SENSORS.read_csv(run.folder / "sensors.csv")
    assert rows.filter(sensor="load of one minute")["part"].unique(maintain_order=True).to_list() == ["stream", "metadata"]
    assert record_in(run.folder)["parts"]["stream"]["sensors"]["load of one minute"]["before"]["median"] == 0.5


def test_sensors_of_a_part_that_failed_are_on_disk(campaign, tmp_path):
    (tmp_path / "root/proc").mkdir(parents=True)
    (tmp_path / "root/proc/loadavg").write_text("9.5 0 0")
    parts = [Fake(ends=GUARD)]
    run = campaign(*parts)
    run.sensors = Sensors(tmp_path / "root", lambda: None)
    run.run(parts)
    assert kept.SENSORS.read_csv(run.folder / "sensors.csv")["value"].max() == 9.5
    assert record_in(run.folder)["parts"]["stream"]["sensors"]["load of one minute"]["after"]["median"] == 9.5


# plans


def test_plan_sums_time_and_takes_the_largest_step():
    steps = {"a": [Step("x", 2, 10, 5, 1), Step("y", 3, 20)], "b": [Step("z", 4, 5, 0, 9)]}
    found = Plan(steps)
    assert (found.seconds, found.seconds_of("a")) == (9, 5)
    assert (found.memory_bytes, found.device_bytes, found.disk_bytes) == (20, 5, 9)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (
            Step("copy, 11 GiB", 1, memory_bytes=11 * GIB),
            r"plan of a, copy, 11 GiB: memory: found 11\.00 GiB, expected at most 10\.80 GiB, 90% of",
        ),
        (Step("file", 1, disk_bytes=10 * GIB), r"plan of a, file: space in .*: found 10\.00 GiB, expected at most 9\.00 GiB"),
    ],
)
def test_plan_that_does_not_fit_is_refused(tmp_path, step, message):
    with pytest.raises(DoesNotFit, match=message):
        Plan({"a": [Step("fits", 1, GIB, 0, GIB), step]}).check(MACHINE, [tmp_path / "not yet"], lambda folder: 10 * GIB)


def test_plan_that_fits_is_not_refused(tmp_path):
    Plan({"a": [Step("fits", 1, 10 * GIB, 0, 9 * GIB)]}).check(MACHINE, [tmp_path], lambda folder: 10 * GIB)


def device(unified):
    return replace(MACHINE, accelerator=Accelerator("GPU", 8 * GIB, 8 * GIB, Bus(1000, "a data sheet"), "CUDA", unified))


def test_memory_of_the_accelerator_is_refused_by_its_name(tmp_path):
    with pytest.raises(DoesNotFit, match="memory of GPU: found"):
        Plan({"a": [Step("copy", 1, device_bytes=8 * GIB)]}).check(device(unified=False), [tmp_path])


def test_unified_memory_holds_both(tmp_path):
    both = Plan({"a": [Step("copy", 1, memory_bytes=6 * GIB, device_bytes=6 * GIB)]})
    both.check(device(unified=False), [tmp_path])
    with pytest.raises(DoesNotFit, match=r"unified memory: found 12\.00 GiB"):
        both.check(device(unified=True), [tmp_path])


def test_nearest_folder_that_exists(tmp_path):
    assert existing(tmp_path / "a/b") == tmp_path


def test_files_of_a_part_lie_in_its_folder(tmp_path):
    part = Fake()
    part.folder = tmp_path
    assert scratch_folders([part]) == [tmp_path]
    assert scratch_folders([Fake()])[0] == existing(Path(scratch_folders([Fake()])[0]))
