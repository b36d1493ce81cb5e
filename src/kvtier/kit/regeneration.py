"""Time of making a block's KV again by forward compute, on top of a context whose KV is there: the other side of moving the block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Protocol

import polars as pl

from kvtier.audit.physical_bound import Checked
from kvtier.audit.timing import relative_times, resolved, steady
from kvtier.errors import InputError
from kvtier.kit import decode
from kvtier.kit.backends import BLOCK_TOKENS, Loaded, Pool, shapes
from kvtier.kit.machine import Machine
from kvtier.kit.parts import Outcome, Progress, Step
from kvtier.kit.timing import tick_s, time_points
from kvtier.measure import kept

LARGEST_DEVIATION = {"float32": 1e-3, "float16": 0.05, "bfloat16": 0.1}
"""Of new KV from that of the prefill, relative: other kernels round otherwise. KV of other tokens or positions differs by about 1."""

ROW_NAMES = {"transformers": "transformers sdpa", "numpy": "numpy"}


class WrongKV(InputError):
    """KV that was made again and is not what was there: its time means nothing."""


class Maker(Protocol):
    """A loaded model that makes KV again."""

    loaded: Loaded
    described: dict[str, str]

    def prefill(self, prompts: Sequence[Sequence[int]]) -> None:
        """Run the first prompt and keep its KV."""
        ...

    def regenerate_s(self, ids: Sequence[int], context_tokens: int) -> tuple[float, float]:
        """Time [s], and relative deviation from the KV of the prefill."""
        ...

    def pool(self) -> Pool:
        """KV of the prompt."""
        ...

    def close(self) -> None:
        """Give the memory back."""
        ...


@dataclass
class Regeneration:
    """Forward compute of one block's tokens by context.

    Parameters
    ----------
    model : str, optional
        As of :class:`kvtier.kit.decode.Decode`; on a CPU ``small``.
    backend : str, optional
        ``transformers`` or ``numpy``; by default the first where it is installed.
    contexts : tuple of int
        Tokens before the block, whose KV is there: whole blocks.
    dtype : str, optional
        As of decode; numpy computes in float32.
    repetitions : int
        Timings a context.
    seed : int
        Of weights and tokens.
    device : str, optional
        ``cpu`` or a device of torch.
    """

    model: str | None = None
    backend: str | None = None
    contexts: tuple[int, ...] = (0, 1024, 4096)
    dtype: str | None = None
    repetitions: int = 24
    seed: int = 7
    device: str | None = None
    name: str = "regeneration"

    @classmethod
    def quick(cls) -> Regeneration:
        """A try of some seconds."""
        return cls(contexts=(0, 1024), repetitions=3)

    def plan(self, machine: Machine) -> list[Step]:
        """As :meth:`kvtier.kit.parts.Part.plan`.

        Raises
        ------
        InputError
            If a setting is out of range.
        """
        backend, model, dtype, device = self._settings(machine)
        shape = decode.shape_of(model)
        longest = max(self.contexts) + BLOCK_TOKENS
        rate = 20e9 * machine.cores / 2 if device == "cpu" else 20e12
        block_flop = sum(shapes.prefill_flop(shape, each + BLOCK_TOKENS) - shapes.prefill_flop(shape, each) for each in self.contexts)
        seconds = 5 + (shapes.prefill_flop(shape, longest) + (self.repetitions + 1) * block_flop) / rate
        needs = decode.memory_bytes(shape, dtype, [(backend, 1, longest)])
        host = decode.RUNTIME_BYTES + needs
        says = (
            f"{BLOCK_TOKENS} tokens again on {', '.join(f'{each:,}' for each in self.contexts)}: {model} as {dtype}, {backend} on {device}"
        )
        return [Step(says, seconds, host, 0 if device == "cpu" else needs)]

    def run(self, machine: Machine, progress: Progress) -> Outcome:
        """As :meth:`kvtier.kit.parts.Part.run`.

        Raises
        ------
        WrongKV
            If what is made again is not what the prefill made.
        UnexpectedWeights, UnexpectedPool
            If weights or KV are not resident at the type that was asked for.
        InputError
            If timings are too short or drift.
        """
        backend, model, dtype, device = self._settings(machine)
        source, tick = f"regeneration of {machine.name}", tick_s()
        progress(f"load {model}", 0.0)
        maker = load(backend, model, dtype, device, self.seed, max(self.contexts) + 2 * BLOCK_TOKENS, machine.cores)
        try:
            checked: list[Checked] = [maker.loaded.check_weights(source)]
            (prompt,) = decode.random_prompts([max(self.contexts) + BLOCK_TOKENS], maker.loaded.vocabulary, self.seed)
            progress("prefill", 0.05)
            maker.prefill([prompt])
            checked.append(maker.pool().check(maker.loaded, source))
            deviations: dict[int, float] = {}

            def time_one(context: int) -> float:
                seconds, deviation = maker.regenerate_s(prompt[context : context + BLOCK_TOKENS], context)
                if not deviation <= LARGEST_DEVIATION[dtype]:
                    expected = f"at most {LARGEST_DEVIATION[dtype]:g}, relative to the KV of the prefill"
                    raise WrongKV(source, f"KV on {context:,} tokens", f"a deviation of {deviation:.3g}", expected)
                deviations[context] = max(deviation, deviations.get(context, 0.0))
                return seconds

            timings = time_points(
                self.contexts,
                self.repetitions,
                time_one,
                lambda context, share: progress(f"{BLOCK_TOKENS} tokens on {context:,}", 0.3 + 0.7 * share),
            )
            loaded, described = maker.loaded, maker.described
        finally:
            maker.close()
        rows = kept.REGENERATION.check(
            pl.DataFrame(
                [
                    {
                        "backend": ROW_NAMES[backend],
                        "device": device,
                        "dtype": dtype,
                        "context_tokens": timing.point,
                        "tokens": BLOCK_TOKENS,
                        "repetition": timing.repetition,
                        "seconds": timing.seconds,
                    }
                    for timing in timings
                ]
            )
        )
        checked += [
            resolved(rows["seconds"].min(), tick, source),
            steady(relative_times(rows, ("context_tokens",), source=source), source),
        ]
        about: dict[str, Any] = {
            "model": loaded.model,
            "backend": backend,
            "how": described.get("sdpa", described.get("numpy", "")),
            "device": device,
            "dtype": dtype,
            "resident_dtype": loaded.resident_dtype,
            "parameters": loaded.parameters,
            "layer_parameters": loaded.layer_parameters,
            "weight_bytes": loaded.weight_bytes,
            "layers": loaded.layers,
            "kv_heads": loaded.kv_heads,
            "head_dim": loaded.head_dim,
            "kv_bytes_per_token": loaded.kv_bytes_per_token,
            "block_tokens": BLOCK_TOKENS,
            "block_bytes": BLOCK_TOKENS * loaded.kv_bytes_per_token,
            "linear_flop": 2 * loaded.parameters * BLOCK_TOKENS,
            "linear_flop_of_layers": 2 * loaded.layer_parameters * BLOCK_TOKENS,
            "computed": "all layers; no logits, which KV does not need: so the layers' share of 2 · P · 16 and attention over the context",
            "largest_deviation": {f"{context:,} tokens": deviations[context] for context in sorted(deviations)},
            "threads": machine.cores,
            "repetitions": self.repetitions,
            "seed": self.seed,
            "tick_s": tick,
        }
        return Outcome({"regeneration": rows}, about, checked)

    def _settings(self, machine: Machine) -> tuple[str, str, str, str]:
        installed = find_spec("torch") is not None and find_spec("transformers") is not None
        backend = self.backend or ("transformers" if installed else "numpy")
        if backend not in ROW_NAMES:
            raise InputError("regeneration", "backend", backend, f"one of {', '.join(ROW_NAMES)}")
        device = "cpu" if backend == "numpy" else self.device or ("cuda" if machine.accelerator else "cpu")
        defaults = decode.CPU if device == "cpu" else decode.ACCELERATOR
        dtype = self.dtype or defaults.dtype
        if dtype not in decode.DTYPES or (backend == "numpy" and dtype != "float32"):
            raise InputError("regeneration", "dtype", dtype, "float32" if backend == "numpy" else f"one of {', '.join(decode.DTYPES)}")
        if self.repetitions < 3:
            raise InputError("regeneration", "repetitions", self.repetitions, "3 or more: drift shows in no fewer")
        if not self.contexts or len(set(self.contexts)) != len(self.contexts):
            raise InputError("regeneration", "contexts", ", ".join(map(str, self.contexts)) or "none", "one or more, each once")
        for context in self.contexts:
            if context < 0 or context % BLOCK_TOKENS:
                raise InputError("regeneration", "contexts", context, f"whole blocks of {BLOCK_TOKENS} tokens")
        points = [(backend, 1, max(self.contexts) + BLOCK_TOKENS)]
        model = self.model or decode.fitting_model(machine, device, defaults, dtype, points)
        if backend == "numpy" and model not in shapes.SHAPES:
            raise InputError("regeneration", "model", model, f"with numpy, one of {', '.join(shapes.SHAPES)}")
        return backend, model, dtype, device


def load(backend: str, model: str, dtype: str, device: str, seed: int, positions: int, threads: int) -> Maker:
    """Load a model."""
    if backend == "numpy":
        from kvtier.kit.backends.numpy import Numpy

        return Numpy(shapes.SHAPES[model], seed)
    from kvtier.kit.backends.transformers import Transformers

    return Transformers(model, dtype, device, seed, positions, threads)
