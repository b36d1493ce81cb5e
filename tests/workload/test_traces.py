"""Loaders: the project's own samples in each format, every fault that is refused, and the counts of the public traces (case T0)."""

import gzip
import json
import tracemalloc
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from kvtier.errors import InputError
from kvtier.simulate import path_blocks
from kvtier.workload import traces
from kvtier.workload.traces import records, samples

MOONCAKE = {"timestamp": 1, "input_length": 600, "output_length": 5, "hash_ids": [0, 1]}
AGENTIC = {"id": "s", "block_size": 64, "requests": [[0.0, 200, 5, 1.5, None, [[1, 3]]]]}
HEADER = {"trace": "kvtier", "version": 1, "block_tokens": 16}
GENERIC = {"time_s": 0.5, "input_tokens": 40, "output_tokens": 5, "blocks": [7, 8, 3]}


def jsonl(folder, *records):
    path = Path(folder, "trace.jsonl")
    path.write_text("".join((record if isinstance(record, str) else json.dumps(record)) + "\n" for record in records))
    return path


@pytest.fixture(scope="module")
def sample_paths(tmp_path_factory):
    return samples.write(tmp_path_factory.mktemp("samples"), seed=1)


def test_samples_are_the_same_requests_in_each_format(sample_paths):
    loaded = {form: traces.load(path) for form, path in sample_paths.items()}
    requests = samples.requests(1)
    for form in ("mooncake", "generic", "parquet"):
        trace = loaded[form]
        assert trace.block_tokens == 512
        assert trace.time_us.tolist() == [one.time_ms * 1000 for one in requests]
        assert trace.input_tokens.tolist() == [one.input_tokens for one in requests]
        assert trace.output_tokens.tolist() == [one.output_tokens for one in requests]
        # Chained identities in order of appearance are what blocks are numbered by.
        assert [path_blocks.block_numbers(trace, number) for number in range(trace.requests)] == [one.blocks for one in requests]
        assert trace.parent.tolist() == loaded["mooncake"].parent.tolist()
    assert loaded["mooncake"].session.tolist() == [-1] * len(requests)
    assert loaded["parquet"].session.tolist() == loaded["generic"].session.tolist() == [one.session for one in requests]
    assert loaded["azure"].edges == 0
    assert loaded["azure"].time_us.tolist() == [one.time_ms * 1000 for one in requests if one.time_ms < 60_000]
    agentic = loaded["agentic"]
    assert agentic.by_session
    assert sorted(set(agentic.session.tolist())) == list(range(5))
    assert agentic.path_blocks.tolist() == (agentic.input_tokens // 64).tolist()
    assert -1 in agentic.api_us.tolist()


def test_sessions_share_no_block(tmp_path):
    other = {**AGENTIC, "id": "t", "requests": [[0.0, 200, 5, None, None, [[1, 3]]]]}
    trace = traces.load(jsonl(tmp_path, AGENTIC, other))
    assert trace.parent.tolist() == [-1, -1]
    assert trace.unique_blocks == 6
    assert trace.api_us.tolist() == [1_500_000, -1]


def test_runs_and_blocks_are_the_same(tmp_path):
    with_runs = {**{key: value for key, value in GENERIC.items() if key != "blocks"}, "runs": [[7, 2], [3, 1]]}
    trace = traces.load(jsonl(tmp_path, HEADER, GENERIC, with_runs))
    assert trace.edges == 1
    assert trace.label(0) == [(7, 2), (3, 1)]


def test_lengths_only_in_the_generic_format(tmp_path):
    trace = traces.load(jsonl(tmp_path, HEADER, {"time_s": 0, "input_tokens": 40, "output_tokens": 5}))
    assert trace.edges == 0
    assert trace.input_tokens.tolist() == [40]


def without(record, key):
    return {name: value for name, value in record.items() if name != key}


FAULTS = {
    "not JSON": ([MOONCAKE, "{nothing"], r"line 2: found \{nothing .*expected one JSON object"),
    "blank": ([MOONCAKE, "", MOONCAKE], r"line 2: found .*expected one JSON object"),
    "no object": ([MOONCAKE, "[1]"], r"line 2: found \[1\], expected one JSON object"),
    "deep": ([MOONCAKE, "[" * 100_000], r"line 2: found \[\[\[.*expected one JSON object"),
    "key twice": ([MOONCAKE, '{"timestamp": 1, "timestamp": 2}'], r"line 2: .*key 'timestamp' twice"),
    "not a number": ([MOONCAKE, '{"timestamp": NaN}'], r"line 2: .*NaN"),
    "infinite": ([json.dumps(MOONCAKE).replace(": 1,", ": 1e999,")], r"line 1, timestamp: found inf, expected a time"),
    "missing key": ([without(MOONCAKE, "hash_ids")], r"line 1, hash_ids: found nothing, expected the key to be given"),
    "unknown key": ([{**MOONCAKE, "model": "x"}], r"line 1, model: found an unknown key"),
    "time as text": ([{**MOONCAKE, "timestamp": "1"}], r"line 1, timestamp: found '1', expected a time"),
    "time as boolean": ([{**MOONCAKE, "timestamp": True}], r"line 1, timestamp: found True, expected a time"),
    "length as float": ([{**MOONCAKE, "input_length": 600.0}], r"line 1, input_length: found 600.0, expected an integer"),
    "length as boolean": ([{**MOONCAKE, "output_length": False}], r"line 1, output_length: found False, expected an integer"),
    "hashes as text": ([{**MOONCAKE, "hash_ids": "01"}], r"line 1, hash_ids: found '01', expected a list"),
    "hash as boolean": ([{**MOONCAKE, "hash_ids": [0, True]}], r"line 1, hash_ids: found True, expected integers"),
    "hash as null": ([{**MOONCAKE, "hash_ids": [0, None]}], r"line 1, hash_ids: found None, expected integers"),
    "negative hash": ([{**MOONCAKE, "hash_ids": [0, -5]}], r"line 1, blocks: found 1 identities from -5"),
    "hash too large": ([{**MOONCAKE, "hash_ids": [0, 2**64]}], r"line 1, blocks: found 1 identities from 18446744073709551616"),
    "hashes longer than the input": ([{**MOONCAKE, "hash_ids": [0, 1, 2]}], r"line 1, blocks: found 3 blocks for 600 tokens"),
    "hashes shorter than the input": ([{**MOONCAKE, "hash_ids": [0]}], r"line 1, hash_ids: found 1 hashes for 600 tokens, expected 2"),
    "unsorted": ([MOONCAKE, {**MOONCAKE, "timestamp": 0}], r"line 2, time: found 0 s, expected requests in order of time"),
    "negative time": ([{**MOONCAKE, "timestamp": -1}], r"line 1, time: found -0.001 s"),
    "empty request": ([{**MOONCAKE, "input_length": 0, "hash_ids": []}], r"line 1, input length: found 0, expected at least 1 token"),
    "two sessions of one id": ([AGENTIC, AGENTIC], r"line 2, id: found 's', expected a string that no session before has"),
    "sessions of two block sizes": ([AGENTIC, {**AGENTIC, "id": "t", "block_size": 16}], r"line 2, block_size: found 16"),
    "block size 0": ([{**AGENTIC, "block_size": 0}], r"line 1, block_size: found 0"),
    "no list of requests": ([{**AGENTIC, "requests": 5}], r"line 1, requests: found 5"),
    "request too short": ([{**AGENTIC, "requests": [[0.0, 5]]}], r"line 1, request 1: found \[0.0, 5\], expected a list of t, input"),
    "run too short": ([{**AGENTIC, "requests": [[0.0, 200, 5, 1, 1, [[1]]]]}], r"line 1, request 1, blocks: found \[\[1\]\]"),
    "run of text": ([{**AGENTIC, "requests": [[0.0, 200, 5, 1, 1, ["ab"]]]}], r"line 1, request 1, blocks: found"),
    "run from below 0": ([{**AGENTIC, "requests": [[0.0, 200, 5, 1, 1, [[-1, 1]]]]}], r"line 1, request 1, blocks: found -1"),
    "runs longer than the input": (
        [{**AGENTIC, "requests": [[0.0, 200, 5, 1, 1, [[1, 10**12]]]]}],
        r"request 1, blocks: found 10{12} blocks",
    ),
    "negative api time": ([{**AGENTIC, "requests": [[0.0, 200, 5, -1e-6, 1, []]]}], r"request 1, api_time, think_time: found -1e-06, 1"),
    "unsorted session": (
        [{**AGENTIC, "requests": [[1.0, 200, 5, 1, 1, []], [0.5, 200, 5, 1, 1, []]]}],
        r"line 1, request 2, time: found 0.5 s",
    ),
    "no session": ([{**AGENTIC, "requests": []}], r"file: found no request"),
    "another version": ([{**HEADER, "version": 2}, GENERIC], r"line 1: found kvtier, version 2"),
    "no block size": ([without(HEADER, "block_tokens"), GENERIC], r"line 1, block_tokens: found nothing"),
    "header alone": ([HEADER], r"file: found no request"),
    "block size below 1": ([{**HEADER, "block_tokens": 0}], r"line 1, block_tokens: found 0, expected at least 1"),
    "blocks and runs": ([HEADER, {**GENERIC, "runs": []}], r"line 2: found blocks and runs, expected one of them"),
    "runs of text": ([HEADER, {**without(GENERIC, "blocks"), "runs": ["ab"]}], r"line 2, runs: found"),
    "session as text": ([HEADER, {**GENERIC, "session": "a"}], r"line 2, session: found 'a', expected an integer"),
    "negative session": ([HEADER, {**GENERIC, "session": -1}], r"line 2, session: found -1, expected 0 or more"),
    "time beyond every float": ([HEADER, {**GENERIC, "time_s": 10**400}], r"line 2, time_s: found one of 2\^63 or more, expected a time"),
    "length of more than 64 bits": ([HEADER, {**GENERIC, "input_tokens": 10**30}], r"line 2, input_tokens: found one of more than 64 bits"),
    "session of more than 64 bits": ([HEADER, {**GENERIC, "session": 2**63}], r"line 2, session: found one of more than 64 bits"),
    "words to the terminal": (["\x1b[2Jhello\r"], r"line 1: found \\x1b\[2Jhello, expected the start of a trace"),
    "no trace": (["hello"], r"line 1: found hello, expected the start of a trace"),
    "nothing": ([], r"line 1: found nothing, expected the start of a trace"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_refused_in_one_line_that_says_where(tmp_path, fault):
    records, message = FAULTS[fault]
    path = jsonl(tmp_path, *records)
    with pytest.raises(InputError, match=message) as raised:
        traces.load(path)
    assert str(raised.value).startswith(f"{path}: ")
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 400


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("2023-11-16 18:17:03.9799600,10", r"line 3: found 2023-11-16 18:17:03.9799600,10, expected a time"),
        ("2023-11-16 18:17:03.9799600,-10,5", r"line 3: found"),
        ("2023-13-16 18:17:03.9799600,10,5", r"line 3, TIMESTAMP: found 2023-13-16 18:17:03"),
        ("2023-11-16 18:17:03.0,0,5", r"line 3, input length: found 0"),
        ("2023-11-16 18:17:01.0,10,5", r"line 3, time: found -1 s"),
        ("", r"line 3: found nothing, expected"),
    ],
)
def test_fault_in_csv(tmp_path, row, message):
    path = tmp_path / "trace.csv"
    path.write_text(f"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:02.0000000,10,5\n{row}\n2023-11-16 18:18:00,1,1")
    with pytest.raises(InputError, match=message):
        traces.load(path)


def test_another_csv_is_refused(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text("TIMESTAMP,tokens\n")
    with pytest.raises(InputError, match=r"line 1: found TIMESTAMP,tokens, expected TIMESTAMP,ContextTokens,GeneratedTokens"):
        traces.load(path)


def test_truncated_gzip(tmp_path, sample_paths):
    whole = gzip.compress(b"".join(json.dumps({**MOONCAKE, "timestamp": n}).encode() + b"\n" for n in range(3000)), compresslevel=0)
    path = tmp_path / "cut.jsonl.gz"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"after line \d+: found a truncated or damaged gzip stream"):
        traces.load(path)
    path.write_bytes(whole[:1000] + b"\x00" * 50 + whole[1050:])
    with pytest.raises(InputError, match=r"cut\.jsonl\.gz"):
        traces.load(path)


@pytest.mark.parametrize("form", ["mooncake", "agentic", "generic", "azure"])
def test_a_byte_order_mark_is_no_content(tmp_path, sample_paths, form):
    marked, content = tmp_path / "marked", b"".join(records.chunks(sample_paths[form], 2**20))
    marked.write_bytes(b"\xef\xbb\xbf" + content)
    plain, found = traces.load(sample_paths[form]), traces.load(marked)
    assert traces.recognise(marked) == form
    assert np.array_equal(found.time_us, plain.time_us)
    assert np.array_equal(found.last_edge, plain.last_edge)


def test_lines_may_end_as_elsewhere(tmp_path, sample_paths):
    returned = tmp_path / "returned.jsonl"
    returned.write_bytes(sample_paths["generic"].read_bytes().replace(b"\n", b"\r\n"))
    assert np.array_equal(traces.load(returned).last_edge, traces.load(sample_paths["generic"]).last_edge)


def test_zstandard_is_named(tmp_path):
    path = tmp_path / "trace.jsonl"
    path.write_bytes(b"\x28\xb5\x2f\xfd" + b"\x00" * 20)
    with pytest.raises(InputError, match="found zstandard, expected plain text or gzip"):
        traces.load(path)


@pytest.mark.parametrize("path", ["missing.jsonl", "."])
def test_unreadable_file(tmp_path, path):
    with pytest.raises(InputError, match="expected a readable trace"):
        traces.load(tmp_path / path)


def test_unknown_format(sample_paths):
    with pytest.raises(InputError, match="format: found csv, expected one of mooncake"):
        traces.load(sample_paths["azure"], "csv")


@pytest.mark.parametrize("compress", [False, True])
def test_line_of_two_gigabytes_is_refused_without_being_read(tmp_path, compress):
    path = tmp_path / "trace.jsonl"
    if compress:
        # A member of zeros for each 64 MiB: gzip streams may be joined.
        path.write_bytes(gzip.compress(json.dumps(MOONCAKE).encode() + b"\n") + gzip.compress(bytes(2**26), mtime=0) * 32)
    else:
        with path.open("wb") as file:
            file.write(json.dumps(MOONCAKE).encode() + b"\n")
            file.truncate(2**31)
    tracemalloc.start()
    with pytest.raises(InputError, match=f"line 2: found more than {records.LIMIT_BYTES} bytes, expected shorter lines"):
        traces.load(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * records.LIMIT_BYTES


def test_longest_line_is_read(tmp_path, monkeypatch):
    path = jsonl(tmp_path, MOONCAKE)
    monkeypatch.setattr(records, "LIMIT_BYTES", len(json.dumps(MOONCAKE)) + 1)
    assert traces.load(path).requests == 1
    monkeypatch.setattr(records, "LIMIT_BYTES", len(json.dumps(MOONCAKE)))
    with pytest.raises(InputError, match="line 1: found more than"):
        traces.load(path)


def test_requests_are_not_held_as_objects(tmp_path):
    """What stays of a request that repeats a path are seven integers; of a new path, its edge."""
    path, count = tmp_path / "trace.jsonl", 20_000
    with path.open("w") as file:
        file.write(json.dumps(HEADER) + "\n")
        for number in range(count):
            blocks = [number % 100, *range(1000, 1030)]
            file.write(json.dumps({"time_s": number, "input_tokens": 500, "output_tokens": 1, "blocks": blocks}) + "\n")
    tracemalloc.start()
    trace = traces.load(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert trace.requests == count
    assert peak < 1_000_000 + 2.5 * 8 * 7 * count


@pytest.fixture
def parquet(tmp_path):
    def write(**columns):
        row = {"time_s": [0.5], "input_tokens": [40], "output_tokens": [5], "blocks": [[7, 8, 3]], "block_tokens": [16]}
        path = tmp_path / "trace.parquet"
        pl.DataFrame({name: value for name, value in (row | columns).items() if value is not None}, strict=False).write_parquet(path)
        return path

    return write


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"time_s": None}, r"columns, time_s: found nothing"),
        ({"model": ["x"]}, r"columns, model: found an unknown key"),
        ({"time_s": ["a"]}, r"row 1, time_s: found 'a'"),
        ({"time_s": [None]}, r"row 1, time_s: found None"),
        ({"time_s": [float("nan")]}, r"row 1, time_s: found nan"),
        ({"input_tokens": [0]}, r"row 1, input length: found 0"),
        ({"input_tokens": [40.0]}, r"row 1, input_tokens: found 40.0, expected an integer"),
        ({"blocks": [[1, None]]}, r"row 1, blocks: found None"),
        ({"blocks": [[1, 2, 3, 4]]}, r"row 1, blocks: found 4 blocks for 40 tokens"),
        ({"block_tokens": [0]}, r"row 1, block_tokens: found 0"),
    ],
)
def test_fault_in_parquet(parquet, columns, message):
    with pytest.raises(InputError, match=message):
        traces.load(parquet(**columns))


def test_block_sizes_that_differ_in_parquet(tmp_path):
    path = tmp_path / "trace.parquet"
    pl.DataFrame({"time_s": [0, 1], "input_tokens": [9, 9], "output_tokens": [1, 1], "block_tokens": [4, 8]}).write_parquet(path)
    with pytest.raises(InputError, match=r"row 2, block_tokens: found 8, expected 4 as in row 1"):
        traces.load(path)


def test_truncated_parquet(parquet):
    path = parquet()
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match="expected a parquet file"):
        traces.load(path)


def test_parquet_is_read_in_batches(tmp_path, monkeypatch):
    rows = 1000
    frame = pl.DataFrame({"time_s": range(rows), "input_tokens": [9] * rows, "output_tokens": range(rows), "block_tokens": [4] * rows})
    frame.write_parquet(tmp_path / "trace.parquet", row_group_size=100)
    monkeypatch.setattr(traces.generic, "BATCH_ROWS", 7)
    assert traces.load(tmp_path / "trace.parquet").output_tokens.tolist() == list(range(rows))


@pytest.mark.parametrize(
    ("name", "requests", "accesses", "unique", "block_ceiling", "token_ceiling"),
    [("conversation", 12_031, 288_500, 182_790, 36.64, 37.36), ("synthetic", 3_993, 121_877, 43_924, 63.96, 65.12)],
)
def test_t0_statistics_of_mooncake(public_trace, name, requests, accesses, unique, block_ceiling, token_ceiling):
    trace = public_trace(name)
    assert (trace.requests, trace.block_accesses, trace.unique_blocks) == (requests, accesses, unique)
    # The hashes cover the partly filled last block, whose tokens then all count.
    assert trace.path_tokens.tolist() == trace.input_tokens.tolist()
    assert np.array_equal(trace.path_blocks, -(-trace.input_tokens // 512))
    assert round(100 * (accesses - unique) / accesses, 2) == block_ceiling
    stop = trace.path_blocks
    found = trace.tokens_of(np.arange(requests), 0, stop - trace.new_blocks)
    assert round(100 * found.sum() / trace.input_tokens.sum(), 2) == token_ceiling


def test_t0_statistics_of_the_sessions(public_trace):
    trace = public_trace("agentic")
    assert trace.requests == 46_218
    assert len(np.unique(trace.session)) == 692
    assert np.array_equal(trace.path_blocks, trace.input_tokens // 64)
    assert (trace.block_accesses, trace.unique_blocks) == (85_405_325, 3_195_527)


@pytest.mark.parametrize(("name", "requests", "input_tokens"), [("code", 8_819, 18_059_974), ("conv", 19_366, 22_361_870)])
def test_t0_statistics_of_azure(public_trace, name, requests, input_tokens):
    trace = public_trace(name)
    assert (trace.requests, trace.edges, int(trace.input_tokens.sum())) == (requests, 0, input_tokens)
