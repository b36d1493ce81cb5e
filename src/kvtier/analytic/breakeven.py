"""Loading the KV of a prompt, or computing it again: the bandwidth at which both take as long."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from kvtier.analytic.footprint import checked_count
from kvtier.analytic.layouts import Kind, Layout
from kvtier.errors import InputError
from kvtier.units import GB

ASSUMED_PEAK, ASSUMED_MFU = "500T", "0.5"
"""Of a server where nothing is said: a peak [FLOP/s] and the share of it that prefill reaches, as :mod:`kvtier.analytic.quantities` reads
them."""

ASSUMED_FLOP_PER_S = 250e12
"""Their product: what the study's run on a trace assumes of a server, and what ``kvtier simulate`` starts from (SPEC §2, the highest of
three shares). The cost models of the published simulators have half of it (SPEC §4)."""


def attention_flop(layout: Layout, context_tokens: int) -> int:
    """Causal attention over a prompt, in all layers [FLOP].

    Parameters
    ----------
    layout : Layout
        Layers of the model, with its query heads.
    context_tokens : int
        Length T of the prompt [tokens].

    Returns
    -------
    int
        Σ over layers of 2 · query_heads · (key + value elements) · pairs: a multiply and an add an element, for the score and for the
        weighted sum. A full layer has T(T + 1)/2 pairs, one with a window w has w(w + 1)/2 + (T − w)·w, one with chunks of w
        has w(w + 1)/2 in each. With equal key and value sizes and full layers alone it is 4 · layers · query_heads · head_dim · pairs.

    Raises
    ------
    InputError
        If the layout states no query heads, or latent layers do not state the sizes of keys and values as attention sees them.

    Notes
    -----
    The softmax and the updates of states are left out. So is attention to another input.
    """
    tokens, total = checked_count("context", context_tokens), 0
    for group in layout.cached:
        if layout.query_heads is None:
            raise InputError(f"model {layout.model}", "query_heads", "nothing", "a number, which the term of attention needs")
        if group.kind is Kind.LATENT and not (group.head_dim and group.value_dim):
            raise InputError(f"model {layout.model}", "head_dim, value_dim", "nothing", "sizes of keys and values, which attention needs")
        elements = group.head_dim + (group.value_dim or group.head_dim)
        total += 2 * group.layers * layout.query_heads * elements * group.attended_pairs(tokens)
    return total


def prefill_flop(layout: Layout, context_tokens: int) -> int:
    """Forward compute of a prompt [FLOP]: 2 · parameters · tokens, and causal attention, which grows with the square.

    Parameters
    ----------
    layout : Layout
        With the model's parameters, active ones where it is a mixture of experts.
    context_tokens : int
        Length of the prompt [tokens].

    Raises
    ------
    InputError
        As :func:`attention_flop`, or if the layout states no parameters.

    Notes
    -----
    Kaplan et al. 2020, section 2.1. Parameters are those that one token passes through: the active ones of a mixture of experts.
    Embedding and output are among them for each token, though a prompt reads rows of the one and needs the other once: a little too much.
    """
    parameters = layout.active_parameters or layout.parameters
    if parameters is None:
        raise InputError(f"model {layout.model}", "parameters", "nothing", "a number, which the linear term needs")
    return 2 * parameters * checked_count("context", context_tokens) + attention_flop(layout, context_tokens)


@dataclass(frozen=True)
class Breakeven:
    """Both ways to have the KV of a prompt on the device.

    Parameters
    ----------
    kv_bytes : int
        What is loaded [B].
    recompute_s : Fraction
        Prefill of the prompt [s].
    setup_s : Fraction
        Fixed cost of loading [s].
    """

    kv_bytes: int
    recompute_s: Fraction
    setup_s: Fraction = Fraction(0)

    @property
    def bandwidth_gbps(self) -> Fraction:
        """Bandwidth above which loading is the faster way [GB/s].

        Notes
        -----
        Loading takes setup + bytes / bandwidth, unloaded: no queueing, nothing hidden behind compute. It equals the prefill at
        bytes / (prefill − setup). A setup as long as the prefill leaves no bandwidth that is enough.

        Raises
        ------
        InputError
            If there is none, for the answer would be negative or infinite.
        """
        left = self.recompute_s - self.setup_s
        if left <= 0:
            found = f"a setup of {float(self.setup_s) * 1e3:,.4g} ms"
            raise InputError("breakeven", "setup", found, f"less than the {float(self.recompute_s) * 1e3:,.4g} ms that recomputing takes")
        return Fraction(self.kv_bytes) / left / GB

    def load_s(self, link_gbps: Fraction) -> Fraction:
        """Time of loading over a link of `link_gbps` [GB/s, decimal], setup included [s]."""
        return self.setup_s + Fraction(self.kv_bytes) / (link_gbps * GB)

    def within(self, link_gbps: Fraction) -> Fraction:
        """The bandwidth, if the link has it [GB/s].

        Parameters
        ----------
        link_gbps : Fraction
            One way [GB/s, decimal].

        Raises
        ------
        InputError
            With both times, if the link is slower: recomputing wins on it.
        """
        needed = self.bandwidth_gbps
        if needed > link_gbps:
            times = f"loading {float(self.load_s(link_gbps)) * 1e3:,.4g} ms, recomputing {float(self.recompute_s) * 1e3:,.4g} ms"
            raise InputError(
                "breakeven", "bandwidth", f"{float(needed):,.4g} GB/s needed ({times})", f"at most the link's {float(link_gbps):,.4g} GB/s"
            )
        return needed


def from_rate(kv_bytes: int, context_tokens: int, prefill_tokens_per_s: Fraction, setup_s: Fraction = Fraction(0)) -> Breakeven:
    """Break-even at a measured prefill rate, the mean over a prompt of this length.

    Parameters
    ----------
    kv_bytes : int
        KV of the prompt [B].
    context_tokens : int
        Length of the prompt [tokens].
    prefill_tokens_per_s : Fraction
        Tokens of the prompt over the time of its prefill [tokens/s].
    setup_s : Fraction
        Fixed cost of loading [s].

    Raises
    ------
    InputError
        If the rate is not positive.
    """
    if prefill_tokens_per_s <= 0:
        raise InputError("breakeven", "prefill rate", float(prefill_tokens_per_s), "more than 0 tokens/s")
    return Breakeven(kv_bytes, Fraction(checked_count("context", context_tokens)) / prefill_tokens_per_s, setup_s)


def from_compute(
    layout: Layout, kv_bytes: int, context_tokens: int, flop_per_s: Fraction, mfu: Fraction, setup_s: Fraction = Fraction(0)
) -> Breakeven:
    """Break-even at a share of a peak: prefill takes :func:`prefill_flop` / (peak · MFU).

    Parameters
    ----------
    layout : Layout
        As for :func:`prefill_flop`.
    kv_bytes : int
        KV of the prompt [B].
    context_tokens : int
        Length of the prompt [tokens].
    flop_per_s : Fraction
        Peak of the device at the type that it computes in [FLOP/s].
    mfu : Fraction
        Share of the peak that prefill reaches, in (0, 1].
    setup_s : Fraction
        Fixed cost of loading [s].

    Raises
    ------
    InputError
        As :func:`prefill_flop`, or if the peak is not positive or the share outside (0, 1].
    """
    if flop_per_s <= 0:
        raise InputError("breakeven", "peak", float(flop_per_s), "more than 0 FLOP/s")
    if not 0 < mfu <= 1:
        raise InputError("breakeven", "mfu", float(mfu), "a share above 0 and at most 1")
    return Breakeven(kv_bytes, Fraction(prefill_flop(layout, context_tokens)) / (flop_per_s * mfu), setup_s)
