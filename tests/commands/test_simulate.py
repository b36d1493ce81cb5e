"""`kvtier simulate` as it is called: what it prints, what programs read, the report, and one line for what is wrong."""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from kvtier.analytic import quantities
from kvtier.analytic.breakeven import ASSUMED_FLOP_PER_S, ASSUMED_MFU, ASSUMED_PEAK
from kvtier.cli import main
from kvtier.simulate.eviction import NAMES
from kvtier.workload.traces import samples

SMALL = ("--hbm", "2 GiB,4 GiB", "--servers", "8")
TIER = ("--tier", "cxl:4 GiB:64 GB/s:0.3 us")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return samples.write(tmp_path_factory.mktemp("samples"))


def run(*words):
    return CliRunner().invoke(main, ["simulate", *map(str, words)])


def answer(*words):
    result = run(*words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def refused(*words):
    """The one line on stderr of a call that cannot be answered."""
    result = run(*words)
    assert result.exit_code == 1, result.output
    assert result.stdout == ""
    *progress, line = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert all(re.match(r"(reading|replaying): ", said) for said in progress)
    return line


def jsonl(path, *lines):
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


# what it answers


@pytest.mark.parametrize("form", ["mooncake", "agentic", "generic", "parquet"])
def test_every_format_with_blocks(files, form):
    found = answer(files[form], *SMALL, *TIER)
    assert found["trace"]["format"] == form
    assert found["trace"]["sha256"] is not None
    assert [row["policy"] for row in found["rows"]] == ["lru", "lfu", "ema005", "s3fifo"] * 2
    for row in found["rows"]:
        assert row["hits"] + sum(tier["hits"] for tier in row["tiers"]) + row["computed_blocks"] == row["blocks"]


def test_a_format_that_is_named_is_not_guessed(files):
    assert answer(files["generic"], *SMALL)["rows"] == answer(files["generic"], "--format", "generic", *SMALL)["rows"]
    assert "--format" in refused(files["generic"], "--format", "moncake")


def test_two_forms_of_one_trace_give_one_answer(files):
    assert answer(files["generic"], *SMALL, *TIER)["rows"] == answer(files["parquet"], *SMALL, *TIER)["rows"]


def test_numerator_denominator_and_warm_up_stand_beside_each_rate(files):
    found = answer(files["mooncake"], *SMALL, "--warm-up", "0.25")
    assert found["counted"] == {"from_request": 10, "requests": 30, "warm_up": 0.25}
    for row in found["rows"]:
        assert row["hit_percent"] == 100 * row["hits"] / row["blocks"]
        assert row["prefix_hit_percent"] == 100 * row["prefix_hits"] / row["blocks"]
        assert row["token_hit_percent"] == 100 * row["hit_tokens"] / row["tokens"]
        assert row["regret_points"] == pytest.approx(row["optimum_percent"] - row["hit_percent"])
    printed = run(files["mooncake"], *SMALL, "--warm-up", "0.25").stdout
    assert "counted from request 10 on: 30 requests after a warm-up of 10" in printed
    row = found["rows"][0]
    assert re.search(rf"2 GiB +LRU +{row['hit_percent']:.2f} +{row['hits']:,} / {row['blocks']:,} +{row['optimum_percent']:.2f}", printed)
    assert f"{found['ceiling']['hits']:,} / {found['ceiling']['blocks']:,}" in printed


def test_nothing_is_left_out_of_a_cold_start(files):
    found = answer(files["mooncake"], *SMALL, "--warm-up", "0")
    assert found["counted"]["from_request"] == 0
    assert found["rows"][0]["blocks"] == found["trace"]["block_accesses"]


def test_capacity_follows_from_the_model(files):
    # 512 tokens of 320 KiB: 160 MiB a block, and 12.8 blocks in 2 GiB; the smaller model has 64 MiB a block.
    assert [row["capacity_blocks"] for row in answer(files["mooncake"], *SMALL)["rows"]][::4] == [12, 25]
    small = answer(files["mooncake"], "--model", "llama-3.1-8b", *SMALL)
    assert [row["capacity_blocks"] for row in small["rows"]][::4] == [32, 64]
    assert small["model"]["block_bytes"] == 64 * 2**20
    assert answer(files["mooncake"], "--dtype", "fp8", *SMALL)["model"]["block_bytes"] == 80 * 2**20


def test_a_configuration_is_a_model(files, tmp_path):
    fields = {"model_type": "llama", "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_size": 4096}
    (tmp_path / "config.json").write_text(json.dumps(fields))
    found = answer(files["mooncake"], "--model", tmp_path, *SMALL)
    assert found["model"]["kv_bytes_per_token"] == 131_072
    # Its parameters are not known, so computing takes no known time; a rate gives it.
    assert "stall_ms_mean" not in found["rows"][0]
    assert any("--prefill-tps gives a rate" in note for note in found["notes"])
    assert answer(files["mooncake"], "--model", tmp_path, "--prefill-tps", "8000", *SMALL)["rows"][0]["stall_ms_mean"] > 0
    assert "parameters" in refused(files["mooncake"], "--model", tmp_path, "--flops", "989T", "--mfu", "0.4", *SMALL)


def test_sizes_with_commas_inside_and_between(files):
    rows = answer(files["mooncake"], "--hbm", "1,024 MiB,2 GiB, 4 GB,512 GiB", "--policy", "lru")["rows"]
    assert [row["asked_bytes"] for row in rows] == [2**30, 2**31, 4 * 10**9, 2**39]
    assert "4 GB " in run(files["mooncake"], "--hbm", "4 GB", "--policy", "lru").stdout


def test_policies_by_name_and_weight(files):
    asked = "LRU,lru-2,S3-FIFO,ema0.02,ema0.02_persistent,priority0.1,priority0.1_demotes,look5,lru"
    slugs = [row["policy"] for row in answer(files["mooncake"], "--hbm", "4 GiB", "--policy", asked)["rows"]]
    assert slugs == ["lru", "lru2", "s3fifo", "ema002", "ema002_persistent", "priority01", "priority01_demotes", "look5"]
    found = answer(files["mooncake"], "--hbm", "4 GiB", "--policy", "all")
    assert [row["policy"] for row in found["rows"]] == list(NAMES)
    assert any("they know what will be asked" in note for note in found["notes"])


def test_case_p13_through_the_command(files):
    words = (files["mooncake"], "--hbm", "1 GiB", "--policy", "lru", "--prefill-tps", "20K")
    one, endless = (answer(*words, "--tier", f"cxl:{size}:64 GB/s")["rows"][0] for size in ("160 MiB", "unlimited"))
    assert one["tiers"][0]["hits"] < endless["tiers"][0]["hits"]
    assert endless["ttft_ms_mean"] < one["ttft_ms_mean"]


def test_a_slower_tier_stalls_longer(files):
    words = (files["mooncake"], "--hbm", "1 GiB", "--policy", "lru", "--prefill-tps", "1M")
    fast, slow, setup = (
        answer(*words, "--tier", f"t:unlimited:{link}")["rows"][0]["stall_ms_mean"] for link in ("64 GB/s", "6.4", "64 GB/s:setup 9 us")
    )
    assert fast < setup < slow


def test_compute_is_assumed_as_in_the_study(files):
    """One assumption: where nothing is said, and in the study's own run on a trace."""
    found = answer(files["mooncake"], *SMALL, "--policy", "lru")
    assert found["prefill"].startswith(f"{ASSUMED_FLOP_PER_S / 1e12:g} TFLOP/s effective, assumed")
    assert float(quantities.amount(ASSUMED_PEAK, "peak", "") * quantities.amount(ASSUMED_MFU, "mfu", "")) == ASSUMED_FLOP_PER_S


def test_an_unstable_queue_is_said(files):
    words = (files["mooncake"], "--hbm", "4 GiB", "--policy", "lru", "--prefill-tps", "10")
    found = answer(*words)
    assert found["rows"][0]["ttft_ms_mean"] is None
    (note,) = [note for note in found["notes"] if "unstable" in note]
    servers = int(re.search(r"(\d+) servers would be enough", note)[1])
    assert answer(*words, "--servers", servers)["rows"][0]["ttft_ms_mean"] > 0
    assert answer(*words, "--servers", servers - 1)["rows"][0]["ttft_ms_mean"] is None
    assert "unstable" in run(*words).stdout


def test_arrivals_of_a_process(files):
    one, other = (answer(files["mooncake"], *SMALL, "--arrivals", "poisson:0.2", "--seed", seed)["rows"][0] for seed in (1, 2))
    assert one["hits"] == other["hits"]
    assert one["ttft_ms_mean"] != other["ttft_ms_mean"]


def test_a_coarse_clock_is_told_and_spread(files, tmp_path):
    ticks = [json.loads(line) for line in files["generic"].read_text().splitlines()]
    for record in ticks[1:]:
        record["time_s"] = record["time_s"] // 3 * 3
    path = tmp_path / "ticks.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in ticks))
    found = answer(path, *SMALL)
    assert any("ticks every 3 s" in note for note in found["notes"])
    spread = answer(path, *SMALL, "--spread")
    assert "ticks of 3 s spread, seed 1" in spread["trace"]["source"]
    assert [row["hits"] for row in spread["rows"]] == [row["hits"] for row in found["rows"]]
    assert any("changes nothing" in note for note in answer(files["generic"], *SMALL, "--spread")["notes"])


def test_a_synthetic_workload_has_no_queue_of_its_own():
    found = answer("--synthetic", "zipf", "--limit-requests", "60", "--policy", "lru")
    assert found["trace"]["requests"] == 60
    assert "ttft_ms_mean" not in found["rows"][0]
    assert found["arrivals"].startswith("none")
    queued = answer("--synthetic", "zipf", "--limit-requests", "60", "--policy", "lru", "--arrivals", "poisson:0.001")
    assert queued["rows"][0]["ttft_ms_mean"] > 0


def test_prefix_first_costs_contiguous_hits(tmp_path):
    # Room for 15 blocks of 5 MiB: the second request takes three of the first one's ten.
    lines = [{"time_s": 0, "input_tokens": 160, "output_tokens": 1, "runs": [[first, 10]]} for first in (0, 20, 0)]
    lines[1] |= {"input_tokens": 128, "runs": [[20, 8]]}
    path = jsonl(tmp_path / "three.jsonl", {"trace": "kvtier", "version": 1, "block_tokens": 16}, *lines)
    words = (path, "--policy", "lru", "--hbm", "75 MiB", "--warm-up", "0")
    suffix, prefix = (answer(*words, *order)["rows"][0] for order in ((), ("--prefix-first",)))
    assert (suffix["hits"], suffix["prefix_hits"]) == (7, 7)
    assert (prefix["hits"], prefix["prefix_hits"]) == (7, 0)


def test_the_caveat_stands_wherever_a_result_does(files):
    found = answer(files["mooncake"], *SMALL, *TIER)
    caveat = found["assumed"][0]
    for words in ("Simulated (provisional)", "lossless residency", "blocks of 512 tokens", "bandwidths", "prefill rate"):
        assert words in caveat
    assert caveat in run(files["mooncake"], *SMALL, *TIER).stdout


def test_policies_have_one_name_in_tables_and_notes(files):
    printed = run(files["mooncake"], *SMALL, "--policy", "farthest,look8").stdout
    assert "no service can run farthest next turn, look-ahead, 8 turns" in printed
    assert "  farthest next turn  " in printed


def test_nothing_counted_is_no_rate(tmp_path):
    path = tmp_path / "last_without_blocks.jsonl"
    header = {"trace": "kvtier", "version": 1, "block_tokens": 16}
    requests = [
        {"time_s": 0, "input_tokens": 32, "output_tokens": 1, "blocks": [0, 1]},
        {"time_s": 9, "input_tokens": 8, "output_tokens": 1},
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in [header, *requests]))
    found = answer(path, "--report", tmp_path / "report.html")
    row = found["rows"][0]
    assert row["blocks"] == 0
    assert row["hit_percent"] is row["optimum_percent"] is row["regret_points"] is None
    assert any("no optimum" in note for note in found["notes"])
    assert "none" in run(path).stdout


# the report


def test_the_report_is_one_file_without_a_network(files, tmp_path):
    path = tmp_path / "report.html"
    result = run(files["mooncake"], *SMALL, *TIER, "--report", path)
    assert result.exit_code == 0, result.output
    assert str(path) in result.stdout
    page = path.read_text(encoding="utf-8")
    assert 'class="badge simulated-provisional"' in page
    assert page.count("<svg") == 4
    assert not re.findall(r"""(?:src|href)=["'](?!data:|#)""", page)
    assert "<script" not in page
    found = answer(files["mooncake"], *SMALL, *TIER)
    assert page.count(found["assumed"][0]) >= 5
    for row in found["rows"]:
        assert f"{row['hits']:,} / {row['blocks']:,}" in page
    assert list(tmp_path.iterdir()) == [path]


def test_a_report_that_cannot_be_written_is_refused_before_the_work(files, tmp_path):
    assert "folder that exists" in refused(files["mooncake"], *SMALL, "--report", tmp_path / "absent" / "report.html")
    assert "ends in .html" in refused(files["mooncake"], *SMALL, "--report", tmp_path / "report.txt")


def test_refused_input_leaves_an_old_report_as_it_was(files, tmp_path):
    report, broken = tmp_path / "report.html", tmp_path / "broken.jsonl.gz"
    report.write_text("old")
    broken.write_bytes(files["mooncake"].read_bytes()[:-20])
    refused(broken, *SMALL, "--report", report)
    assert report.read_text() == "old"
    assert sorted(tmp_path.iterdir()) == [broken, report]


# what is refused


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--hbm", "0 GiB"), "--hbm: size: found '0 GiB'"),
        (("--hbm", "32"), "--hbm: size: found '32'"),
        (("--hbm", "big"), "--hbm: size: found 'big'"),
        (("--hbm", "1 MiB"), "room for one block"),
        (("--tier", "cxl:512 GiB"), "NAME:SIZE:BANDWIDTH"),
        (("--tier", "cxl:512 GiB:"), "--tier cxl: value: found ''"),
        (("--tier", "cxl:512 GiB:0 GB/s"), "--tier cxl: value"),
        (("--tier", "cxl:0 GiB:64 GB/s"), "--tier cxl: size"),
        (("--tier", "cxl:1 MiB:64 GB/s"), "--tier cxl: size: found 1,048,576 B"),
        (("--tier", "cxl:4 GiB:64 GB/s:soon"), "--tier cxl: setup: found 'soon'"),
        (("--tier", "a:4 GiB:64 GB/s", "--tier", "a:4 GiB:64 GB/s"), "a second tier of that name"),
        (("--policy", "emma0.05"), "nearest"),
        (("--policy", "lrru"), "lru"),
        (("--policy", "ema1.5"), "found 'ema1.5'"),
        (("--policy", ""), "--policy"),
        (("--policy", "look0"), "--policy: name: found 'look0'"),
        (("--tier", "HBM:4 GiB:64 GB/s"), "--tier HBM: name: found what a column of the answer is called"),
        (("--tier", "computed:4 GiB:64 GB/s"), "--tier computed: name"),
        (("--model", "lama3-70b"), "Llama-3-70B"),
        (("--model", "absent/config.json"), "absent/config.json: file: found No such file"),
        (("--warm-up", "1"), "--warm-up: value: found '1'"),
        (("--warm-up", "half"), "--warm-up"),
        (("--arrivals", "uniform"), "--arrivals: process: found 'uniform'"),
        (("--arrivals", "poisson:0"), "--arrivals: value: found '0'"),
        (("--mfu", "1.5"), "--mfu: value: found 1.5"),
        (("--prefill-tps", "-3"), "--prefill-tps: value: found '-3'"),
        (("--dtype", "fp7"), "--dtype"),
    ],
)
def test_options_that_cannot_be(files, words, said):
    line = refused(files["mooncake"], *words)
    if said == "nearest":
        said = "ema"
    assert said in line


@pytest.mark.parametrize("field", ["input_tokens", "output_tokens"])
def test_lengths_that_cannot_be_counted_together(tmp_path, field):
    header = {"trace": "kvtier", "version": 1, "block_tokens": 16}
    requests = [{"time_s": k, "input_tokens": 16, "output_tokens": 1, "blocks": [0]} | {field: 2**62} for k in range(4)]
    line = refused(jsonl(tmp_path / "trace.jsonl", header, *requests))
    assert f"{field.replace('_', ' ')}: found 1.84e+19 in all" in line


GOOD = {"timestamp": 1000, "input_length": 700, "output_length": 5, "hash_ids": [0, 1]}


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ("not json", "line 2: found not json"),
        (GOOD | {"hash_ids": [0, 1, 2, 3]}, "line 2, blocks: found 4 blocks for 700 tokens"),
        (GOOD | {"timestamp": 999}, "line 2, time: found 0.999 s"),
        (GOOD | {"timestamp": -1}, "line 2, time: found -0.001 s"),
        (GOOD | {"input_length": 0, "hash_ids": []}, "line 2, input length: found 0"),
        ('{"timestamp": 1000, "hash_ids": [' + "1," * 9_000_000 + "1]}", "line 2: found more than"),
    ],
)
def test_files_that_cannot_be(tmp_path, second, said):
    path = jsonl(tmp_path / "trace.jsonl", GOOD, second)
    line = refused(path)
    assert said in line
    assert line.startswith(f"error: {path}: ")


def test_more_files_that_cannot_be(files, tmp_path):
    broken = tmp_path / "broken.jsonl.gz"
    broken.write_bytes(gzip.compress(files["generic"].read_bytes())[:-30])
    assert "truncated or damaged gzip stream" in refused(broken)
    assert "lengths alone" in refused(files["azure"])
    assert "No such file" in refused(tmp_path / "absent.jsonl")
    assert "No such file" in refused(tmp_path / "absent.jsonl", "--format", "generic")
    assert "directory" in refused(tmp_path, "--format", "parquet")
    (tmp_path / "empty.jsonl").write_text("")
    assert "empty.jsonl: line 1: found nothing, expected the start of a trace" in refused(tmp_path / "empty.jsonl")


@pytest.mark.parametrize("form", [(), ("--format", "generic"), ("--format", "parquet")])
def test_a_pipe_is_refused_and_not_waited_for(tmp_path, form):
    """A trace is read once for its format, once for its requests and once for its sha256."""
    os.mkfifo(tmp_path / "pipe.jsonl")
    assert "pipe.jsonl: file: found a pipe or device" in refused(tmp_path / "pipe.jsonl", *form)


def test_more_users_than_there_can_be(files):
    """Each has a clock: so many once were a traceback of numpy."""
    result = run(files["agentic"], "--users", "99999999999999")
    assert result.exit_code == 2
    assert "--users" in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    "words", [(), ("a.jsonl", "--synthetic", "zipf"), ("--synthetic", "zopf"), ("a.jsonl", "--prefill-tps", "5", "--flops", "1T")]
)
def test_wrong_calls(words):
    assert run(*words).exit_code == 2


# how it runs


def test_help_imports_nothing_heavy():
    code = "import sys; sys.argv = ['kvtier', 'simulate', '--help']\nfrom kvtier.cli import main\ntry: main()\nexcept SystemExit: pass\n"
    code += "sys.exit(', '.join({'numpy', 'polars', 'altair', 'numba'} & set(sys.modules)) or None)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "kvtier simulate requests.jsonl" in done.stdout


def test_progress_is_quiet_for_programs_and_plain_elsewhere(files):
    assert run(files["mooncake"], *SMALL).stderr.splitlines()[-1].startswith("replaying: complete")
    assert "\x1b" not in run(files["mooncake"], *SMALL).output
    json.loads(run(files["mooncake"], *SMALL, "--json").stdout)


def test_ctrl_c_leaves_nothing_behind(tmp_path):
    report = tmp_path / "report.html"
    words = [
        "simulate",
        "--synthetic",
        "zipf",
        "--policy",
        "all",
        "--hbm",
        "8 GiB,16 GiB,32 GiB,64 GiB",
        "--jobs",
        "2",
        "--report",
        str(report),
    ]
    running = subprocess.Popen(
        [sys.executable, "-m", "kvtier.cli", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert running.stderr.readline().startswith("replaying: starts")
        # As a terminal does: to all processes of the group.
        os.killpg(running.pid, signal.SIGINT)
        printed, said = running.communicate()
    finally:
        running.kill()
    assert running.returncode == 130
    assert printed == ""
    assert said.splitlines()[-1] == "interrupted: nothing is written"
    assert "Traceback" not in said
    # All that was said is in: no worker is left that could say more.
    assert list(tmp_path.iterdir()) == []


def test_the_trace_that_help_shows_is_one(tmp_path):
    shown = re.findall(r"^ *(\{.*\})$", run("--help").stdout, re.MULTILINE)
    assert len(shown) == 3
    found = answer(jsonl(tmp_path / "trace.jsonl", *shown), "--policy", "lru", "--warm-up", "0")
    assert (found["rows"][0]["hits"], found["rows"][0]["blocks"]) == (2, 6)


def test_the_same_answer_by_one_process_and_by_two(files, monkeypatch):
    from kvtier.simulate import replays

    monkeypatch.setattr(replays, "PROCESSES_FROM_S", 0.0)
    words = (files["mooncake"], *SMALL, *TIER)
    assert answer(*words, "--jobs", "1") == answer(*words, "--jobs", "2")


def test_limited_requests_are_the_first_ones(files):
    few = answer(files["generic"], *SMALL, "--limit-requests", "10", "--warm-up", "0")
    head = Path(files["generic"]).with_name("head.jsonl")
    head.write_text("".join(files["generic"].read_text().splitlines(keepends=True)[:11]))
    whole = answer(head, *SMALL, "--warm-up", "0")
    assert few["rows"] == whole["rows"]
    assert few["trace"]["unique_blocks"] == whole["trace"]["unique_blocks"]
