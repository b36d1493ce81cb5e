import polars as pl
import pytest

from kvtier.errors import InputError
from kvtier.evidence.labels import Label
from kvtier.publish import render
from kvtier.publish.charts import decode_fit


def test_the_band_at_zero_is_the_error_of_the_intercept(decode_tables):
    rows, fits, _ = decode_tables
    for fit in pl.read_csv(fits).iter_rows(named=True):
        sizes = pl.read_csv(rows).filter(pl.col("run") == fit["run"])["kv_gib"].to_list()
        error = decode_fit.fit_error_ms(0.0, sizes, fit["slope_ms_per_gib_standard_error"])
        assert error == pytest.approx(fit["intercept_ms_standard_error"], rel=1e-12)


def test_is_measured_and_says_each_fit(decode_tables, ledger):
    figure = decode_fit.draw(*decode_tables, ledger)
    assert figure.label is Label.MEASURED
    assert figure.badge == "Measured · Box One, 2026-08-19"
    for run in ("hf", "vllm"):
        for field in ("intercept_ms", "slope"):
            quote = ledger[f"measured.gb10.{run}.{field}"]
            assert f"{quote.bare} {quote.interval}" in figure.alt
    assert figure.badge in render.svg(figure, render.spec(figure))


def test_marks_the_row_that_decides(decode_tables, ledger):
    assert "takes 345.9 ms; without that point its slope is 11.87 ± 1.20 ms/GiB" in decode_fit.draw(*decode_tables, ledger).alt


def test_no_line_is_drawn_beyond_the_timed_sizes(decode_tables, ledger):
    drawn = decode_fit.draw(*decode_tables, ledger).drawn
    ends = drawn.filter(pl.col("mark") == "fit").group_by("run").agg(pl.col("kv_gib").max())
    assert dict(ends.iter_rows()) == {"hf": 7.0, "vllm": 14.0}


def test_a_platform_that_does_not_name_a_run_is_refused(decode_tables, ledger):
    rows, fits, platform = decode_tables
    platform.write_text("machine: Box One\ndecode: {hf: {name: HF + SDPA}}\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"platform\.yaml: decode\.vllm"):
        decode_fit.draw(rows, fits, platform, ledger)


def test_fits_that_are_not_the_ledgers_are_refused(decode_tables, ledger):
    rows, fits, platform = decode_tables
    pl.read_csv(fits).with_columns(pl.col("slope_ms_per_gib") * 2).write_csv(fits)
    with pytest.raises(InputError, match=r"measured\.gb10\.hf\.slope"):
        decode_fit.draw(rows, fits, platform, ledger)
