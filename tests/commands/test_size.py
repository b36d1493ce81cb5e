"""`kvtier size` and `kvtier breakeven` as they are called: what they print, what programs read, and one line for what is wrong."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from kvtier.analytic.catalogue import Catalogue
from kvtier.cli import main


def run(*words):
    return CliRunner().invoke(main, list(words))


def answer(*words):
    result = run(*words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_size_in_words():
    result = run("size", "llama-3.1-8b", "--context", "128K", "--device", "80 GiB")
    assert result.exit_code == 0
    for line in (
        "131,072 B = 128 KiB",
        "2,097,152 B = 2 MiB",
        "65,536 B = 64 KiB in each of 32 layers: 2 copies of 32,768 B = 32 KiB",
        "17,179,869,184 B = 16 GiB ≈ 17.18 GB",
        "122,528 tokens",
        "28,693, so 459,088 tokens",
        "3 of 131,072 tokens; a capacity, not served users",
    ):
        assert line in result.stdout


def test_size_prints_both_figures_of_windows():
    result = run("size", "gpt-oss-20b", "--context", "8192", "--batch", "32")
    assert "≈ 6.094 GiB ≈ 6.543 GB window-aware" in result.stdout
    assert "= 12 GiB ≈ 12.88 GB paged" in result.stdout


def test_size_for_programs():
    found = answer("size", "deepseek-v3", "--tp", "8", "--context", "32K", "--batch", "3", "--dtype", "fp8")
    assert (found["kv_bytes_per_token"], found["kv_bytes_per_token_in_all"]) == (35_136, 281_088)
    assert found["batch_bytes"] == 3 * 32_768 * 35_136
    assert found["weight_bytes"] == 671 * 10**9
    assert found["pieces"] == [{"layers": 61, "part_bytes": [8192, 1024], "copies": 1, "layer_bytes": 9216}]


def test_size_of_a_quantised_cache():
    assert answer("size", "llama-3.1-8b", "--dtype", "int4")["kv_bytes_per_token"] == 512 * 72
    assert answer("size", "llama-3.1-8b", "--dtype", "int4", "--group", "0")["kv_bytes_per_token"] == 512 * 64
    assert answer("size", "llama-3.1-8b", "--dtype", "int4", "--group", "32", "--scale-bytes", "2")["kv_bytes_per_token"] == 512 * 72
    assert answer("size", "llama-3.1-8b", "--dtype", "fp8", "--group", "128")["kv_bytes_per_token"] == 512 * 132


def test_size_of_a_configuration(tmp_path):
    fields = {"model_type": "llama", "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_size": 4096}
    (tmp_path / "config.json").write_text(json.dumps(fields))
    found = answer("size", str(tmp_path))
    assert found["kv_bytes_per_token"] == 131_072
    assert found["weight_bytes"] is None
    assert answer("size", str(tmp_path / "config.json"), "--parameters", "8.03B")["weight_bytes"] == 16_060_000_000
    assert answer("size", str(tmp_path), "--device", "H100")["device"]["sequences"] == 71
    assert "weights not subtracted" in run("size", str(tmp_path), "--device", "H100").stdout


def test_weights_are_as_published_unless_asked_otherwise():
    assert answer("size", "gpt-oss-20b")["weight_bytes"] == 13_743_895_347
    assert answer("size", "gpt-oss-20b", "--weights-dtype", "bf16")["weight_bytes"] == 41_800_000_000
    assert answer("size", "llama-3.1-8b", "--weights-dtype", "fp8")["weight_bytes"] == 8_030_000_000


def test_a_context_beyond_the_stated_one_is_said():
    assert answer("size", "llama-2-7b", "--context", "32K")["notes"] == ["the model's stated context is 4,096 tokens"]
    assert "note: not counted: KV of the other input in 8 cross" in run("size", "llama-3.2-11b-vision").stdout


def test_list():
    rows = answer("size", "--list")
    assert [row["model"] for row in rows] == [layout.model for layout in Catalogue().values()]
    assert "gpt-oss-20b" in run("size", "--list").stdout


def test_breakeven_in_words_and_for_programs():
    words = ("breakeven", "llama-3.1-8b", "--context", "32K", "--prefill-tps", "8000")
    assert answer(*words)["breakeven_gbps"] == 1.048576
    result = run(*words, "--link", "64")
    assert "1.049 GB/s, where it takes 4.096 s" in result.stdout
    assert "67.11 ms at 64 GB/s: loading wins" in result.stdout


def test_breakeven_from_compute():
    found = answer("breakeven", "llama-3.1-70b", "--context", "128K", "--flops", "989T", "--mfu", "0.4", "--link", "64 GB/s")
    assert found["attention_flop"] == 4 * 80 * 64 * 128 * 131_072 * 131_073 // 2
    assert found["prefill_flop"] - found["attention_flop"] == 2 * 70_600_000_000 * 131_072
    assert found["recompute_s"] == pytest.approx(found["prefill_flop"] / 395.6e12)
    assert found["breakeven_gbps"] == pytest.approx(found["kv_bytes"] / found["recompute_s"] / 1e9)


def test_breakeven_of_windows_loads_what_they_hold():
    words = ("breakeven", "mistral-7b-v0.1", "--context", "32K", "--prefill-tps", "1000")
    assert answer(*words, "--paged")["kv_bytes"] == 8 * answer(*words)["kv_bytes"] == 2**32


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("size llama-3.1-9b", "model: name: found 'llama-3.1-9b', expected a name such as"),
        ("size nothing/config.json", "nothing/config.json: file: found No such file or directory"),
        ("size llama-3.1-8b --context 0", "--context: tokens: found '0'"),
        ("size llama-3.1-8b --context 99999999999999999999", "--context: tokens"),
        ("size llama-3.1-8b --batch 0", "--batch: tokens: found '0'"),
        ("size llama-3.1-8b --tp 3", "model Llama-3.1-8B: tp: found 3, expected a divisor or a multiple of its 8 KV heads"),
        ("size llama-3.1-8b --dtype fp7", "--dtype: format: found fp7"),
        ("size llama-3.1-8b --dtype bf16 --scale-bytes 2", "scale_bytes: found 2"),
        ("size llama-3.1-8b --device 80", "--device: memory: found '80'"),
        ("size llama-3.1-70b --device H100", "size: device: found weights of"),
        ("size llama-3.1-8b --device H100 --utilization 1.1", "utilization"),
        ("size llama-3.1-8b --device H100 --workspace 1", "--workspace: size: found '1'"),
        ("size llama-3.1-8b --parameters none", "--parameters: value: found 'none'"),
        ("breakeven llama-3.1-8b --context 8K --prefill-tps 80000 --link 2", "10.49 GB/s needed (loading 536.9 ms, recomputing 102.4 ms)"),
        ("breakeven llama-3.1-8b --context 8K --prefill-tps 80000 --setup-ms .", "--setup-ms: value: found '.'"),
        ("breakeven llama-3.1-8b --context 8K --prefill-tps 80000 --setup-ms -1", "--setup-ms: value: found '-1'"),
        ("breakeven llama-3.1-8b --context 8K --prefill-tps 80000 --setup-ms 200", "less than the 102.4 ms that recomputing takes"),
        ("breakeven llama-3.1-8b --context 8K --prefill-tps -5", "--prefill-tps: value: found '-5'"),
        ("breakeven llama-3.1-8b --context 8K --flops 989T --mfu 2", "breakeven: mfu: found 2"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(words, message):
    result = run(*words.split())
    assert result.exit_code == 1
    assert result.stdout == ""
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        "size",
        "size --list llama-3.1-8b",
        "breakeven llama-3.1-8b --context 8K",
        "breakeven llama-3.1-8b --context 8K --flops 1T",
        "breakeven llama-3.1-8b --context 8K --flops 1T --mfu 0.5 --prefill-tps 5",
        "breakeven llama-3.1-8b --prefill-tps 5",
    ],
)
def test_a_wrong_call_is_refused(words):
    assert run(*words.split()).exit_code == 2


@pytest.mark.parametrize("words", [["size", "--help"], ["breakeven", "--help"], ["size", "llama-3.1-8b", "--device", "H100"]])
def test_neither_help_nor_answer_needs_tables_of_numbers(words):
    script = (
        "import sys\n"
        "from kvtier.cli import main\n"
        f"main({words!r}, standalone_mode=False)\n"
        "sys.exit(', '.join({'numpy', 'polars', 'numba'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("asked", [(), ("--json",)])
@pytest.mark.parametrize(
    ("redirected", "said"),
    [
        (">/dev/full", "found No space left on device, expected room for the whole answer"),
        (">&-", "found a closed stream, expected one that can be written"),
    ],
)
def test_an_answer_that_cannot_be_written_is_said_in_one_line(asked, redirected, said):
    command = " ".join([sys.executable, "-m", "kvtier.cli", "size", "llama-3.1-8b", *asked, redirected])
    result = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 1
    assert result.stderr.splitlines() == [f"error: stdout: output: {said}"]
