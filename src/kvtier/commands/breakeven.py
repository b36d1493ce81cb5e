"""`kvtier breakeven`: the bandwidth above which loading KV beats computing it again."""

from __future__ import annotations

from typing import Any

import click

from kvtier.commands.answer import as_json, show, show_json


@click.command()
@click.argument("word", metavar="MODEL|CONFIG")
@click.option("--context", required=True, help="Tokens of the prompt; K is 1,024.")
@click.option("--prefill-tps", help="Prefill rate at this context [tokens/s], as measured.")
@click.option("--flops", help="Peak of the device or devices [FLOP/s], such as 989T; with --mfu.")
@click.option("--mfu", help="Share of the peak that prefill reaches.")
@click.option("--link", help="Bandwidth of the link [GB/s, decimal]: an answer above it is refused.")
@click.option("--setup-ms", default="0", show_default=True, help="Fixed cost of loading [ms].")
@click.option("--dtype", default="bf16", show_default=True, help="Of the cache, as for kvtier size.")
@click.option("--paged", is_flag=True, help="Load all layers in unified pages, not only what windows hold.")
@click.option("--parameters", help="Number of parameters that a token passes through, such as 8.03B.")
@as_json
def breakeven(word: str, in_json: bool, **options: Any) -> None:
    """Bandwidth above which loading the KV of a prompt beats computing it again.

    Loading takes setup + bytes / bandwidth, unloaded. Computing takes tokens / rate, or (2 * parameters * tokens + attention) /
    (peak * MFU), where attention grows with the square of the context. Peak, rate and link are those of the whole system.

    \b
    Examples:
      kvtier breakeven llama-3.1-8b --context 32K --prefill-tps 8000
      kvtier breakeven llama-3.1-70b --context 128K --flops 989T --mfu 0.4 --link 64

    Exit code 1 if recomputing wins on the link, or no bandwidth is enough.
    """
    from kvtier.commands import models

    measured, computed = options["prefill_tps"] is not None, options["flops"] is not None or options["mfu"] is not None
    if measured == computed or (computed and None in (options["flops"], options["mfu"])):
        raise click.UsageError("either --prefill-tps, or --flops and --mfu")
    answer = _answer(models.model(word, options.pop("parameters")), **options)
    if in_json:
        show_json(answer)
    else:
        show(*_blocks(answer))


def _answer(
    layout: Any,
    *,
    context: str,
    prefill_tps: str | None,
    flops: str | None,
    mfu: str | None,
    link: str | None,
    setup_ms: str,
    dtype: str,
    paged: bool,
) -> dict[str, Any]:
    from kvtier.analytic import breakeven as rule
    from kvtier.analytic.footprint import Footprint, kinds
    from kvtier.analytic.kv_formats import FORMATS, named
    from kvtier.analytic.quantities import amount, amount_or_zero, tokens

    length = tokens(context)
    footprint = Footprint(layout, named(dtype, FORMATS, "--dtype"))
    loaded = footprint.paged_bytes(length) if paged else footprint.sequence_bytes(length)
    setup = amount_or_zero(setup_ms, "--setup-ms", "a time of 0 or more [ms]") / 1000
    flop = None
    if prefill_tps is not None:
        both = rule.from_rate(loaded, length, amount(prefill_tps, "--prefill-tps", "a rate above 0 [tokens/s]"), setup)
    else:
        peak = amount(flops or "", "--flops", "a peak above 0 [FLOP/s], such as 989T")
        share = amount(mfu or "", "--mfu", "a share above 0 and at most 1")
        both, flop = rule.from_compute(layout, loaded, length, peak, share, setup), rule.prefill_flop(layout, length)
    width = amount(link.removesuffix("GB/s"), "--link", "a bandwidth above 0 [GB/s]") if link is not None else None
    needed = both.bandwidth_gbps if width is None else both.within(width)
    answer: dict[str, Any] = {
        "model": layout.model,
        "layers": kinds(layout),
        "source": layout.source,
        "context_tokens": length,
        "cached_as": footprint.stored.said,
        "loaded": "paged" if paged else "window-aware" if layout.windowed else "all",
        "kv_bytes": loaded,
        "prefill_flop": flop,
        "attention_flop": None if flop is None else rule.attention_flop(layout, length),
        "recompute_s": float(both.recompute_s),
        "setup_s": float(both.setup_s),
        "breakeven_gbps": float(needed),
        "load_at_breakeven_s": float(both.load_s(needed)),
        "link_gbps": None if width is None else float(width),
        "load_on_link_s": None if width is None else float(both.load_s(width)),
    }
    return answer | {"notes": [*layout.notes, *(f"not counted: {words}" for words in layout.not_counted)]}


def _blocks(answer: dict[str, Any]) -> list[Any]:
    from kvtier.analytic.quantities import rounded, said
    from kvtier.terminal import Fields

    def ms(seconds: float) -> str:
        return f"{rounded(seconds)[0]} s" if seconds >= 1 else f"{rounded(seconds * 1e3)[0]} ms"

    windows = f", {answer['loaded']}" if answer["loaded"] != "all" else ""
    flop = answer["prefill_flop"]
    compute = f"{rounded(flop / 1e12)[0]} TFLOP, {100 * answer['attention_flop'] / flop:.3g}% of it attention" if flop else ""
    link = ""
    if answer["link_gbps"] is not None:
        link = f"{ms(answer['load_on_link_s'])} at {answer['link_gbps']:,.4g} GB/s: loading wins"
        if answer["link_gbps"] == answer["breakeven_gbps"]:
            link = link.replace("loading wins", "as long as recomputing")
    fields = Fields(
        [
            ("model", f"{answer['model']}, {answer['layers']}"),
            ("prompt", f"{answer['context_tokens']:,} tokens"),
            ("KV to load", f"{said(answer['kv_bytes'])}{windows}"),
            ("cached as", answer["cached_as"]),
            ("prefill", compute),
            ("recomputing takes", ms(answer["recompute_s"])),
            ("setup of loading", ms(answer["setup_s"]) if answer["setup_s"] else ""),
            ("loading is faster above", f"{answer['breakeven_gbps']:,.4g} GB/s, where it takes {ms(answer['load_at_breakeven_s'])}"),
            ("on the link it takes", link),
            ("not in it", "queueing on the link, and what either hides behind other work"),
        ]
    )
    return [fields, *(f"note: {words}" for words in answer["notes"])]
