import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from kvtier.errors import InputError
from kvtier.jobs import reporting


@pytest.fixture
def job(tmp_path):
    return SimpleNamespace(rule="sweep", log=[str(tmp_path / "logs/sweep.log")])


def log(job):
    return Path(job.log[0]).read_text(encoding="utf-8")


def test_bad_input_is_one_line_and_exit_status_1(job, capsys):
    with pytest.raises(SystemExit) as ended, reporting(job):
        raise InputError("a.csv", "column ms", "NaN", "a finite number")
    assert ended.value.code == 1
    assert capsys.readouterr().err == "error: a.csv: column ms: found NaN, expected a finite number\n"
    assert log(job) == "error: a.csv: column ms: found NaN, expected a finite number\n"


def test_a_defect_keeps_its_traceback_in_the_log(job):
    with pytest.raises(ZeroDivisionError), reporting(job):
        print(1 / 0)
    assert "ZeroDivisionError" in log(job)


def test_success_is_logged(job):
    with reporting(job):
        pass
    assert log(job) == "sweep: done\n"


HOLD = """
import sys, time
from kvtier.jobs import wait_for_other_builds
wait_for_other_builds(sys.argv[1])
print("held", flush=True)
time.sleep(float(sys.argv[2]))
"""


def test_a_second_build_waits_and_a_killed_one_leaves_nothing_behind(tmp_path):
    first = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path), "60"], stdout=subprocess.PIPE, text=True)
    assert first.stdout.readline() == "held\n"
    second = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path), "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert "waiting for another build" in second.stderr.readline()
    first.kill()
    assert second.communicate(timeout=30)[0] == "held\n"
    assert second.returncode == 0
    first.wait()
    first.stdout.close()


def test_a_waiting_build_can_be_ended(tmp_path):
    first = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path), "60"], stdout=subprocess.PIPE, text=True)
    assert first.stdout.readline() == "held\n"
    second = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path), "0"], stderr=subprocess.PIPE, text=True)
    assert "waiting" in second.stderr.readline()
    second.terminate()
    assert second.wait(timeout=30) != 0
    second.stderr.close()
    first.kill()
    first.wait()
    first.stdout.close()
