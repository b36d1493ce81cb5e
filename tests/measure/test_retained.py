"""Retained rows: the published ones, and every kind of row that is refused."""

from pathlib import Path

import pytest

from kvtier.errors import InputError
from kvtier.measure import retained

GB10 = Path(__file__).resolve().parents[2] / "data/measured/gb10-2026-08-19"
HEADER = "batch,context_tokens,step_ms\n"


def write(tmp_path, text):
    path = tmp_path / "decode.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_rows_are_those_of_the_specification():
    hf = retained.read_decode_steps(GB10 / "decode_hf_sdpa.csv")
    vllm = retained.read_decode_steps(GB10 / "decode_vllm_fa2.csv")
    assert (hf.height, vllm.height) == (7, 9)
    assert hf.row(-1) == (16, 4096, 165.1)
    assert (16, 16384, 345.9) in vllm.rows()
    assert retained.read_streaming_copy(GB10 / "streaming.csv") == retained.StreamingCopy(gbps=236.5, buffer_gib=4, runs=20)


def test_kv_sizes_from_the_geometry_and_as_published():
    sizes = retained.kv_gib(retained.read_decode_steps(GB10 / "decode_vllm_fa2.csv"), 57_344)
    assert sizes == [0.21875, 0.875, 1.708984375, 0.875, 3.5, 6.8359375, 3.5, 14.0, 7.0]
    assert retained.as_published(sizes) == [0.22, 0.88, 1.71, 0.88, 3.5, 6.84, 3.5, 14.0, 7.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("batch,context_tokens\n1,4096\n", r"column step_ms: found columns batch, context_tokens, expected the column to be present"),
        (HEADER + "1,4096,104.6\n1,8192,NaN\n", r"column step_ms, row 2: found NaN, expected a finite Float64"),
        (HEADER + "1,4096,inf\n", r"column step_ms, row 1: found inf"),
        (HEADER + "1,4096,104.6\n4,4096,-1\n", r"column step_ms, row 2: found -1\.0, expected a time above 0 ms"),
        (HEADER + "1,4096,0\n", r"column step_ms, row 1: found 0\.0"),
        (HEADER + "1,4096,104.6\n0,8192,110\n", r"column batch, row 2: found 0, expected 1 sequence or more"),
        (HEADER + "-4,8192,110\n", r"column batch, row 1: found -4"),
        (HEADER + "1.5,8192,110\n", r"column batch, row 1: found 1\.5, expected a "),
        (HEADER + "1,0,110\n", r"column context_tokens, row 1: found 0, expected 1 token or more"),
        (HEADER + "1,4096\n", r"column step_ms, row 1: found None"),
        (HEADER + "1,4096,fast\n", r"column step_ms, row 1: found fast"),
        (
            HEADER + "1,4096,104.6\n1,8192,110\n1,4096,104.6\n",
            r"columns batch, context_tokens, row 3: found 1 × 4096 again \(first in row 1\), expected each \(batch, context_tokens\) once",
        ),
        (HEADER, r"rows: found none, expected at least one data row"),
        ("", r"file: found .*, expected a CSV table with columns batch, context_tokens, step_ms"),
        ("# only a comment\n", r"file: found "),
    ],
)
def test_refuses_rows_and_says_where(tmp_path, text, message):
    path = write(tmp_path, text)
    with pytest.raises(InputError, match=message) as refused:
        retained.read_decode_steps(path)
    assert str(refused.value).startswith(f"{path}: ")
    assert "\n" not in str(refused.value)


def test_refuses_a_missing_file(tmp_path):
    with pytest.raises(InputError, match=r"absent\.csv: file: found"):
        retained.read_decode_steps(tmp_path / "absent.csv")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("scale,4,20,236.5\n", "column kernel: found 0 rows named copy, expected exactly one"),
        ("copy,4,20,236.5\ncopy,4,20,236.0\n", "column kernel: found 2 rows"),
        ("copy,4,20,0\n", r"column median_gbps, row 1: found 0\.0, expected a bandwidth above 0 GB/s"),
        ("copy,-4,20,236.5\n", r"column buffer_gib, row 1: found -4\.0, expected a size above 0 GiB"),
        ("copy,4,0,236.5\n", "column runs, row 1: found 0, expected 1 run or more"),
        ("copy,4,20,nan\n", "column median_gbps, row 1: found nan"),
    ],
)
def test_refuses_streaming_rows(tmp_path, rows, message):
    path = write(tmp_path, "kernel,buffer_gib,runs,median_gbps\n" + rows)
    with pytest.raises(InputError, match=message):
        retained.read_streaming_copy(path)
