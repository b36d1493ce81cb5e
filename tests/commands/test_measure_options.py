"""Options of the measuring commands that cannot be, refused before anything is measured."""

import click
import pytest
from click.testing import CliRunner

from kvtier.cli import main
from kvtier.commands import measure


@pytest.mark.parametrize("read", [measure.sizes, measure.counts])
def test_a_digit_that_is_no_number_is_refused(read):
    with pytest.raises(click.BadParameter, match="²"):
        read(None, None, "1,²")


def test_what_is_asked_twice_is_measured_once():
    assert measure.sizes(None, None, "1MiB,4KiB,1024KiB") == (2**20, 2**12)
    assert measure.counts(None, None, "2,1,2") == (2, 1)


@pytest.mark.parametrize("text", ["0", "1KB?", "KiB", "-1", "", "1MiB,", "nan"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(click.BadParameter, match="is no size"):
        measure.sizes(None, None, text)


def test_a_size_may_have_no_unit():
    assert measure.sizes(None, None, "4096, 4 KiB,1 kB") == (4096, 1000)


@pytest.mark.parametrize("option", ["bus", "accelerator-bus"])
@pytest.mark.parametrize("value", ["nan", "inf"])
def test_a_bus_that_bounds_nothing_is_refused(option, value):
    result = CliRunner().invoke(main, ["measure", "stream", "--dry-run", f"--{option}-gbps", value, f"--{option}-source", "a data sheet"])
    assert result.exit_code == 1
    assert f"error: --{option}-gbps: value: found {value}" in result.output
    assert "Traceback" not in result.output


def test_a_device_without_its_library_is_refused(monkeypatch):
    monkeypatch.setattr(measure, "find_spec", lambda name: None)
    result = CliRunner().invoke(main, ["measure", "stream", "--dry-run", "--device", "cuda"])
    assert result.exit_code == 1
    assert "error: --device: name: found 'cuda', expected cpu" in result.output


@pytest.mark.parametrize("number", ["2", "10001", "1" + 22 * "0"])
def test_repetitions_that_end_neither_too_soon_nor_never(number):
    result = CliRunner().invoke(main, ["measure", "metadata", "--dry-run", "--repetitions", number])
    assert result.exit_code == 2
    assert "3<=x<=10000" in result.output
