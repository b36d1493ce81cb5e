import subprocess
from pathlib import Path

import pytest

from kvtier.certification import sums
from kvtier.errors import InputError

ROOT = Path(__file__).resolve().parents[2]


def named():
    return [line.split("  ", 1)[1] for line in (ROOT / "SHA256SUMS").read_text().splitlines()]


def check(folder):
    return subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=folder, capture_output=True, text=True, check=False)


def test_every_digest_is_that_of_the_tracked_file():
    run = check(ROOT)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.xdist_group("certification")
def test_all_that_is_published_and_all_data_are_in_the_list_but_the_list_and_the_readme(rules):
    data = {
        path.relative_to(ROOT).as_posix()
        for folder in ("inputs", "measured", "bench", "published", "traces")
        for path in (ROOT / "data" / folder).rglob("*")
        if path.is_file() and path.suffix != ".md"
    }
    assert set(named()) == (set(rules["published"]) | data) - {"SHA256SUMS", "README.md"}
    assert named() == sorted(named())


def test_a_changed_byte_is_found(tmp_path):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(name)
    (tmp_path / "SHA256SUMS").write_text(sums.lines({name: tmp_path / name for name in ("b.csv", "a.csv")}))
    assert check(tmp_path).returncode == 0
    (tmp_path / "b.csv").write_text("c")
    run = check(tmp_path)
    assert run.returncode != 0
    assert "b.csv: FAILED" in run.stdout


def test_what_cannot_be_listed_is_refused(tmp_path):
    with pytest.raises(InputError, match="one without backslash"):
        sums.lines({"a\\b": tmp_path})
    with pytest.raises(InputError, match="expected a file to sum"):
        sums.lines({"a": tmp_path / "a"})
