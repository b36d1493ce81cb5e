import json

import pytest

from kvtier.errors import InputError
from kvtier.measure import kept_points
from kvtier.measure.kept_summary import summary


@pytest.fixture
def folder(write_kept, tmp_path):
    return write_kept(tmp_path / "run")


def test_medians_are_what_the_rows_were_made_from(folder):
    found = summary(folder)
    rows = found["points"]["movement"]["rows"]
    first = next(row for row in rows if row["path"] == "memory to memory" and row["piece_bytes"] == 4096)
    assert first["median"] == pytest.approx(0.5 + 4096 / 5e3)
    assert first["low"] == pytest.approx(0.98 * first["median"])
    assert first["repetitions"] == 7
    lookups = [row["median"] for row in found["points"]["metadata"]["rows"] if row["operation"] == "lookup" and row["policy"] == "lfu"]
    assert lookups == pytest.approx([80, 80, 160])
    assert found["points"]["stream"]["unit"] == "GB/s"
    assert {row["bytes"] for row in found["bytes_per_block"]} == {72}


def test_slopes_are_what_the_rows_were_made_from(folder):
    fits = summary(folder)["fits"]
    memory = next(each for each in fits["movement"] if each["path"] == "memory to memory")
    assert memory["gbps"]["value"] == pytest.approx(5)
    assert memory["setup_us"]["value"] == pytest.approx(0.5)
    (decode,) = fits["decode"]
    assert decode["ms_per_1024_tokens"]["low"] < 200 * 1024 * 4096 / 2**30 < decode["ms_per_1024_tokens"]["high"]


def test_is_json_and_the_same_twice(folder):
    assert json.dumps(summary(folder)) == json.dumps(summary(folder), allow_nan=False)


def test_a_part_alone_is_summed_up_alone(write_kept, tmp_path):
    found = summary(write_kept(tmp_path / "run", only=("folding",)))
    assert set(found["points"]) == {"folding"}
    assert found["fits"] == {}


def test_too_few_repetitions_have_a_median_without_ends(write_kept, tmp_path):
    folder = write_kept(tmp_path / "run", only=("regeneration",))
    path = folder / "regeneration.csv"
    path.write_text("\n".join(line for line in path.read_text().splitlines() if line.split(",")[5] in {"repetition", "1", "2"}) + "\n")
    (row, _) = summary(folder)["points"]["regeneration"]["rows"]
    assert (row["repetitions"], row["low"], row["high"]) == (2, None, None)
    assert row["median"] == pytest.approx(1e3 * 0.03 * (0.98 + 1.03) / 2)


def test_what_cannot_be_fitted_says_why(write_kept, tmp_path):
    folder = write_kept(tmp_path / "run", only=("movement",))
    path = folder / "movement.csv"
    path.write_text(
        "\n".join(line for line in path.read_text().splitlines() if line.split(",")[1] in {"piece_bytes", "4096", "16384"}) + "\n"
    )
    assert {each["left_out"] for each in summary(folder)["fits"]["movement"]} == {"2 sizes, 3 are needed"}


@pytest.mark.parametrize(
    ("table", "column", "value", "said"),
    [
        ("movement", 4, "0", r"movement\.csv: column seconds, row 1: found 0\.0, expected a value above 0"),
        ("movement", 1, "many", r"movement\.csv: column piece_bytes, row 1: found many"),
        ("metadata", 3, "2", r"metadata\.csv: row 2: found a second time of operation lookup, policy lru, blocks 1000, repetition 2"),
    ],
)
def test_a_damaged_table_is_told_in_one_line(folder, table, column, value, said):
    path = folder / f"{table}.csv"
    head, first, *rest = path.read_text().splitlines()
    cells = first.split(",")
    cells[column] = value
    path.write_text("\n".join([head, ",".join(cells), *rest]) + "\n")
    with pytest.raises(InputError, match=said) as raised:
        summary(folder)
    assert "\n" not in str(raised.value)


def test_a_folder_of_nothing_is_refused(tmp_path):
    with pytest.raises(InputError, match="found no table of raw rows"):
        summary(tmp_path)


def test_a_stray_table_is_refused(folder):
    (folder / "streams.csv").write_text("a\n1\n")
    with pytest.raises(InputError, match=r"streams\.csv: file: found a table of no known name"):
        kept_points.read(folder)
