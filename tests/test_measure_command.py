"""The measuring commands, with parts that measure nothing."""

import io
import json
import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import dataclass, replace
from pathlib import Path

import fake_parts
import pytest
from click.testing import CliRunner
from fake_parts import MACHINE, Fake

from kvtier.cli import main
from kvtier.commands import measure
from kvtier.commands.progress import Bars, Lines
from kvtier.kit import buses, system
from kvtier.kit.parts import Step
from kvtier.units import GIB

ROOT = Path(__file__).resolve().parents[1]
SLUG = MACHINE.slug


@dataclass
class Table(Fake):
    name: str = "metadata"
    table: str = "table_size"
    blocks: tuple = (1000,)

    def run(self, machine, progress):
        self.rows = fake_parts.table_size(len(self.blocks))
        return super().run(machine, progress)


@pytest.fixture
def parts(monkeypatch):
    """Classes of parts by name, to be changed by a test."""
    known = {"stream": Fake, "metadata": Table}
    monkeypatch.setattr(measure, "PARTS", dict.fromkeys(known, ""))
    monkeypatch.setattr(measure, "_class_of", known.__getitem__)
    monkeypatch.setattr(measure, "lacks_torch", lambda: False)
    return known


@pytest.fixture
def here(tmp_path, monkeypatch, parts):
    """A checkout as the current folder, on a machine that is told."""
    (tmp_path / "src/kvtier").mkdir(parents=True)
    (tmp_path / "Snakefile").write_text("")
    (tmp_path / buses.FILE).parent.mkdir(parents=True)
    (tmp_path / buses.FILE).write_bytes((ROOT / buses.FILE).read_bytes())
    monkeypatch.chdir(tmp_path)
    seen(monkeypatch, MACHINE)
    return tmp_path


def seen(monkeypatch, machine):
    def this_machine(known=None, stated=None, name="", **more):
        assert known is not None
        found = replace(machine, bus=stated or machine.bus)
        return replace(found, name=name, slug=system.slug_of(name)) if name else found

    monkeypatch.setattr(system, "this_machine", this_machine)


def kvtier(*arguments):
    return CliRunner().invoke(main, ["measure", *arguments])


def answer(*arguments):
    result = kvtier(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def live(root):
    return sorted(path.name for path in (root / "results/live").iterdir())


def test_run_leaves_rows_record_and_summary(here):
    result = kvtier("stream")
    assert result.exit_code == 0, result.output
    (folder,) = (here / "results/live").iterdir()
    assert folder.name.startswith(f"{SLUG}-20")
    assert sorted(path.name for path in folder.iterdir()) == ["platform.json", "sensors.csv", "stream.csv", "summary.json"]
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["points"]["stream"]["rows"][0]["repetitions"] == 3
    assert "stream.csv 3" in result.stdout
    assert str(folder) in result.stdout
    assert "stream: starts, about 2 s" in result.stderr
    assert "stream: complete" in result.stderr


def test_of_many_points_those_of_the_largest_size_are_shown():
    points = [{"kernel": kernel, "buffer_bytes": size} for size in range(1, 10) for kernel in ("read", "copy")]
    shown, which = measure._few(points)
    assert shown == [{"kernel": "read", "buffer_bytes": 9}, {"kernel": "copy", "buffer_bytes": 9}]
    assert which == ", buffer_bytes 9"
    assert measure._few(points[:4]) == (points[:4], "")


def test_answer_for_programs(here, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/somewhere/kvtier", "measure", "stream"])
    found = answer("stream")
    assert found["record"]["machine"]["slug"] == SLUG
    assert found["record"]["parts"]["stream"]["state"] == "complete"
    assert found["record"]["command"] == "kvtier measure stream"
    assert found["failures"] == []
    assert not found["kept"]
    assert found["summary"]["points"]["stream"]["unit"] == "GB/s"


def test_second_run_has_a_folder_of_its_own(here):
    folders = [Path(answer("stream")["folder"]).name for _ in range(2)]
    assert folders[1] == f"{folders[0]}-2"


def test_settings_reach_the_parts_that_have_them(here, monkeypatch):
    found = answer("stream", "--repetitions", "5")
    assert found["record"]["parts"]["stream"]["about"]["repetitions"] == 5


def test_setting_of_one_part_is_not_that_of_another(parts):
    made = measure.make_parts(["stream", "metadata"], False, {"metadata.blocks": (5, 6), "repetitions": 7, "stream.repetitions": None})
    assert [part.repetitions for part in made] == [7, 7]
    assert made[1].blocks == (5, 6)


@pytest.mark.parametrize(("word", "size"), [("4096", 4096), ("64KiB", 65536), ("1 MiB", 2**20), ("1MiB,2GiB", (2**20, 2**31))])
def test_sizes_with_units(word, size):
    assert measure.sizes(None, None, word) == (size if isinstance(size, tuple) else (size,))


@pytest.mark.parametrize(
    "option", [("--buffers", "big"), ("--buffers", "0"), ("--buffers", "1QiB"), ("--threads", "0"), ("--threads", "1,x")]
)
def test_settings_that_are_none_are_a_wrong_call(here, option):
    result = kvtier("stream", *option)
    assert result.exit_code == 2
    assert not (here / "results").exists()


@pytest.mark.parametrize(("load", "warned"), [(5.0, True), (0.3, False)])
def test_busy_machine_is_said_to_be_busy(here, monkeypatch, load, warned):
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    result = kvtier("stream")
    assert result.exit_code == 0
    assert ("note: the load of the last minute is 5.0 on 2 cores" in result.stderr) == warned


# plans


def test_dry_run_prints_the_plan_and_does_nothing(here):
    result = kvtier("all", "--dry-run")
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["all", "4", "s", "4.0", "MiB"] in lines
    assert "100 GB/s, a data sheet" in result.stdout
    assert not (here / "results").exists()


def test_dry_run_for_programs(here):
    found = answer("all", "--dry-run")
    assert found["needs"] == {"seconds": 4.0, "memory_bytes": 4 * 2**20, "device_bytes": 0, "disk_bytes": 0}
    assert set(found["steps"]) == {"stream", "metadata"}


@pytest.mark.parametrize("arguments", [(), ("--dry-run",)])
@pytest.mark.parametrize(
    ("step", "message"),
    [
        (
            Step("copy, 1 TiB", 1, memory_bytes=1024 * GIB),
            "plan of stream, copy, 1 TiB: memory: found 1024.00 GiB, expected at most 10.80 GiB",
        ),
        (Step("file", 1, disk_bytes=2**60), "plan of stream, file: space in "),
    ],
)
def test_what_does_not_fit_is_refused_before_it_starts(here, parts, arguments, step, message):
    @dataclass
    class Large(Fake):
        def plan(self, machine):
            return [step]

    parts["stream"] = Large
    result = kvtier("stream", *arguments)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"error: {message}")
    assert len(result.stderr.splitlines()) == 1
    assert not (here / "results").exists()


# bus and name


def test_stated_bus_overrides(here):
    found = answer("stream", "--bus-gbps", "89.6", "--bus-source", "two modules")
    assert found["record"]["bus"] == {"gbps": 89.6, "source": "two modules"}


@pytest.mark.parametrize("arguments", [("--bus-gbps", "89.6"), ("--bus-source", "two modules"), ("--accelerator-bus-gbps", "1")])
def test_bus_without_its_source_is_a_wrong_call(here, arguments):
    result = kvtier("stream", *arguments)
    assert result.exit_code == 2
    assert "belong together" in result.stderr


def test_platform_is_named_by_the_caller(here):
    found = answer("stream", "--platform", "Lab Box")
    assert Path(found["folder"]).name.startswith("lab_box-20")
    assert found["record"]["machine"]["name"] == "Lab Box"


# keep


def test_complete_run_is_kept(here):
    found = answer("all", "--keep")
    folder = Path(found["folder"])
    assert found["kept"]
    assert folder.parent == here / "data/measured"
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", "platform.json", "sensors.csv", "stream.csv", "table_size.csv"]
    assert live(here) == []
    # Another run of the day takes another name, so that it can be kept as well.
    assert Path(answer("all", "--keep")["folder"]).name == f"{folder.name}-2"


def test_live_run_is_kept_later(here):
    folder = answer("stream")["folder"]
    result = kvtier("keep", folder)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"Kept in data/measured/{Path(folder).name}.")
    again = kvtier("keep", folder)
    assert again.exit_code == 1
    assert len(again.stderr.splitlines()) == 1


def test_without_a_bus_keep_is_refused_before_anything_is_measured(here, monkeypatch):
    seen(monkeypatch, replace(MACHINE, bus=None))
    result = kvtier("stream", "--keep")
    assert result.exit_code == 1
    assert "--bus-gbps and --bus-source" in result.stderr
    assert not (here / "results").exists()
    assert kvtier("stream").exit_code == 0


def test_quick_try_is_not_kept(here):
    result = kvtier("stream", "--quick", "--keep")
    assert result.exit_code == 2
    found = answer("stream", "--quick")
    assert found["record"]["parts"]["stream"]["about"]["repetitions"] == 1
    assert "quick try" in kvtier("keep", found["folder"]).stderr


def test_part_that_fails_is_said_and_nothing_is_kept(here, parts):
    @dataclass
    class Guarded(Table):
        ends: BaseException | None = fake_parts.GUARD

    parts["metadata"] = Guarded
    result = kvtier("all", "--keep")
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1] == f"error: metadata: {fake_parts.GUARD}; nothing is kept"
    (folder,) = (here / "results/live").iterdir()
    assert (folder / "stream.csv").exists()
    assert not (here / "data/measured").exists()


def test_run_without_any_complete_part_has_no_summary(here, parts):
    @dataclass
    class Guarded(Fake):
        ends: BaseException | None = fake_parts.GUARD

    parts["stream"] = Guarded
    result = CliRunner().invoke(main, ["measure", "stream", "--json"])
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert found["summary"] == {}
    assert found["failures"] == [f"stream: {fake_parts.GUARD}"]
    assert not (Path(found["folder"]) / "summary.json").exists()
    result = kvtier("stream")
    assert result.exit_code == 1
    assert "failed" in result.stdout


def test_outside_a_checkout_a_folder_is_named(here, tmp_path_factory, monkeypatch):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.chdir(elsewhere)
    assert "--out DIR" in kvtier("stream").stderr
    assert kvtier("stream", "--dry-run").exit_code == 0
    assert "whose data/measured" in kvtier("stream", "--out", "runs", "--keep").stderr
    result = kvtier("stream", "--out", "runs")
    assert result.exit_code == 0, result.output
    assert len(list((elsewhere / "runs").iterdir())) == 1


# without the extra


def test_decode_without_torch_says_how_to_install_it(here, monkeypatch):
    monkeypatch.setattr(measure, "lacks_torch", lambda: True)
    result = kvtier("decode")
    assert result.exit_code == 1
    assert "kvtier[measure]" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_all_without_torch_leaves_decode_out_and_says_so(here, parts, monkeypatch):
    monkeypatch.setattr(measure, "PARTS", dict.fromkeys(["stream", "decode"], ""))
    monkeypatch.setattr(measure, "lacks_torch", lambda: True)
    result = kvtier("all")
    assert result.exit_code == 0, result.output
    assert "note: decode is left out" in result.stderr
    (folder,) = (here / "results/live").iterdir()
    found = json.loads((folder / "platform.json").read_text())
    assert list(found["parts"]) == ["stream"]
    assert "kvtier[measure]" in found["left_out"]["decode"]


# however it ends


def test_interrupt_leaves_complete_parts(here, parts):
    @dataclass
    class Stopped(Table):
        ends: BaseException | None = KeyboardInterrupt()  # noqa: RUF009

    parts["metadata"] = Stopped
    result = kvtier("all", "--keep")
    assert result.exit_code == 130
    assert result.stderr.splitlines()[-1].startswith("interrupted: what is complete is in ")
    (folder,) = (here / "results/live").iterdir()
    states = [part["state"] for part in json.loads((folder / "platform.json").read_text())["parts"].values()]
    assert states == ["complete", "interrupted"]
    assert (folder / "summary.json").exists()
    assert not (here / "data/measured").exists()


PROGRAM = """
import sys, time
sys.path.insert(0, {tests!r})
import fake_parts
from kvtier.commands import measure
from kvtier.cli import main

class Sleeps(fake_parts.Fake):
    def run(self, machine, progress):
        print("asleep", flush=True)
        time.sleep(60)

known = {{"stream": fake_parts.Fake, "metadata": lambda: Sleeps("metadata")}}
measure.PARTS = dict.fromkeys(known, "")
measure.make_parts = lambda names, quick, settings: [known[name]() for name in names]
measure.lacks_torch = lambda: False
sys.argv = ["kvtier", "measure", "all", "--out", {out!r}]
main()
"""


@pytest.mark.parametrize(("sent", "code", "state"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGKILL, -signal.SIGKILL, "running")])
def test_signals_leave_complete_parts_and_an_honest_record(tmp_path, sent, code, state):
    program = textwrap.dedent(PROGRAM).format(tests=str(ROOT / "tests/kit"), out=str(tmp_path / "runs"))
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT)
    assert process.stdout.readline() == "asleep\n"
    os.kill(process.pid, sent)
    process.communicate(timeout=60)
    assert process.returncode == code
    (folder,) = (tmp_path / "runs").iterdir()
    states = [part["state"] for part in json.loads((folder / "platform.json").read_text())["parts"].values()]
    assert states == ["complete", state]
    assert len((folder / "stream.csv").read_text().splitlines()) == 4
    assert not list(folder.glob(".*"))


# help and progress


@pytest.mark.parametrize("command", [(), ("stream",), ("movement",), ("decode",), ("metadata",), ("all",), ("keep",)])
def test_help_of_every_command(command):
    result = kvtier(*command, "--help")
    assert result.exit_code == 0
    assert "Usage:" in result.stdout


def test_help_imports_nothing_heavy():
    program = (
        "import sys; sys.argv = ['kvtier', 'measure', 'all', '--help']\nfrom kvtier.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print({'numpy', 'numba', 'polars', 'torch', 'rich', 'kvtier.kit'} & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == "set()\n"


def test_every_part_can_be_made_and_made_quick():
    """The table of parts names classes that are there and have the settings that options set."""
    made = {name: measure._class_of(name) for name in measure.PARTS}
    for name, kind in made.items():
        assert kind().name == name
        assert kind.quick().name == name


def test_lines_are_said_every_ten_seconds():
    stream, seconds = io.StringIO(), iter([0.0, 0.0, 5.0, 12.0, 12.0, 130.0, 130.0])
    lines = Lines(stream, seconds.__next__)
    lines.starts("stream", 50)
    lines.at("stream", "copy", 0.1)
    lines.at("stream", "read", 0.25)
    lines.ends("stream", "complete", "3 rows")
    assert stream.getvalue().splitlines() == [
        "stream: starts, about 50 s",
        "stream: 25%, read",
        "stream: complete after 2.2 min: 3 rows",
    ]


def test_bars_on_a_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    bars = Bars(stream)
    bars.starts("stream", 5)
    bars.at("stream", "copy, [1 MiB]", 0.5)
    bars.ends("stream", "complete", "3 rows in stream.csv")
    bars.close()
    shown = stream.getvalue()
    assert "copy, [1 MiB]" in shown
    assert "100%" in shown
    assert "complete: 3 rows in stream.csv" in shown
