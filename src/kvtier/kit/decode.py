"""Time of a decode step by batch and context, by differencing: (t(N) − t(2)) / (N − 2), as the GB10 rows were made (SPEC §7).

What a generation costs once, such as its first allocation or a prefill inside it, is in both times and drops out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from kvtier.audit.physical_bound import Bandwidth, Checked, physical_bound
from kvtier.audit.residency import unified_tiers
from kvtier.audit.sequences import distinct_sequences
from kvtier.audit.timing import relative_times, resolved, steady
from kvtier.errors import InputError
from kvtier.kit.backends import BLOCK_TOKENS, Backend, shapes
from kvtier.kit.machine import Bus, Machine
from kvtier.kit.parts import Outcome, Progress, Step
from kvtier.kit.timing import Timing, tick_s, time_points
from kvtier.measure import fit, kept
from kvtier.model.config import ModelConfig
from kvtier.units import GB, GIB

SHORT_TOKENS = 2
"""Generated tokens of the short run."""

ROW_NAMES = {
    "sdpa": "transformers sdpa",
    "sdpa-in-place": "transformers sdpa, cache in place",
    "eager": "transformers eager",
    "vllm": "vllm",
}
"""Column ``backend`` by way."""

DTYPES = ("float32", "float16", "bfloat16")

BEYOND_CACHE = 4
"""From this multiple of a processor's last-level cache on, what a step reads is held against the bus."""

RUNTIME_BYTES = GIB
"""torch and transformers themselves, generously."""

Point = tuple[str, int, int]
"""Way, batch, context."""


@dataclass(frozen=True)
class Defaults:
    """What is measured if nothing is said."""

    model: str
    dtype: str
    ways: tuple[str, ...]
    batches: tuple[int, ...]
    contexts: tuple[int, ...]
    steps: int


CPU = Defaults("small", "float32", ("sdpa", "sdpa-in-place", "eager"), (1, 2, 4), (1024, 2048, 4096), 10)
"""float32: half precision is emulated on many processors."""

ACCELERATOR = Defaults("qwen2.5-7b", "float16", ("sdpa", "sdpa-in-place", "eager"), (1, 4, 16), (4096, 16_384, 32_768), 32)

SMALLER = ("qwen2.5-1.5b", "qwen2.5-0.5b", "small")
"""Models for an accelerator that the default does not fit into, in order."""

MOST_TOKENS = 16 * 16_384
"""KV tokens of the largest default point: 16 × 32,768 is left out, as it was on the GB10."""


@dataclass(frozen=True)
class _Settings:
    model: str
    dtype: str
    device: str
    steps: int
    points: tuple[Point, ...]

    @property
    def on_accelerator(self) -> bool:
        return self.device != "cpu"


@dataclass
class Decode:
    """Decode steps of a model by batch and context.

    Parameters
    ----------
    model : str, optional
        ``small``, ``qwen2.5-0.5b``, ``-1.5b`` or ``-7b`` for random weights in that shape; else a folder or a name on the hub.
    backends : tuple of str, optional
        Of ``sdpa``, ``sdpa-in-place``, ``eager``; or ``vllm`` alone. By default the three, the last two at the corners of the sweep.
    batches, contexts : tuple of int, optional
        Sequences, and tokens that a timed step reads on average in each. Every pair is a point.
    steps : int, optional
        N, generated tokens of the long run; by default 32 on an accelerator, 10 on a CPU.
    dtype : str, optional
        ``float32``, ``float16``, ``bfloat16``; by default ``float16`` on an accelerator, ``float32`` on a CPU.
    repetitions : int
        Timings a point.
    seed : int
        Of weights and tokens.
    device : str, optional
        ``cpu`` or a device of torch; by default ``cuda`` where the machine has an accelerator.
    """

    model: str | None = None
    backends: tuple[str, ...] | None = None
    batches: tuple[int, ...] | None = None
    contexts: tuple[int, ...] | None = None
    steps: int | None = None
    dtype: str | None = None
    repetitions: int = 6
    seed: int = 7
    device: str | None = None
    name: str = "decode"

    @classmethod
    def quick(cls) -> Decode:
        """A try of half a minute."""
        return cls(batches=(1, 2), contexts=(512, 1024), repetitions=3, steps=6)

    def plan(self, machine: Machine) -> list[Step]:
        """As :meth:`kvtier.kit.parts.Part.plan`.

        Raises
        ------
        InputError
            If a setting is out of range.
        """
        settings = self._settings(machine)
        shape = shape_of(settings.model)
        lengths = prompt_lengths(settings.points, lambda context: context)
        per_token = shapes.kv_bytes_per_token(shape, settings.dtype)
        weights = shapes.parameters(shape) * shapes.element_bytes(settings.dtype)
        needs = memory_bytes(shape, settings.dtype, settings.points)
        # Rates seen on 2 cores of 2 GHz; of an accelerator, what its bus makes of them.
        scale = machine.cores / 2 if not settings.on_accelerator else _bus_gbps(machine, settings.device, 300.0) / 10
        prefill_s = sum(shapes.prefill_flop(shape, length) for length in lengths) / (20e9 * scale)
        tokens = (self.repetitions + 1) * (settings.steps + SHORT_TOKENS)
        timed_s = sum(
            tokens * (0.006 + (weights * (1 + 0.4 * batch) + 5 * batch * context * per_token) / (8e9 * scale))
            for _, batch, context in settings.points
        )
        resident = needs if settings.on_accelerator else 0
        host = RUNTIME_BYTES + (weights if settings.on_accelerator else needs)
        named = f"{settings.model} as {settings.dtype} on {settings.device}"
        ways = ", ".join(dict.fromkeys(way for way, _, _ in settings.points))
        return [
            Step(f"{named}: load, and prefill {sum(lengths):,} tokens", 10 + prefill_s, host, resident),
            Step(f"{len(settings.points)} points of {ways}: 2 and {settings.steps} tokens", timed_s, host, resident),
        ]

    def run(self, machine: Machine, progress: Progress) -> Outcome:
        """As :meth:`kvtier.kit.parts.Part.run`.

        Raises
        ------
        UnexpectedWeights, UnexpectedPool
            If weights or KV are not resident at the type that was asked for.
        SharedSequences, PrefixCacheHit
            If sequences could share KV.
        AboveTheBus
            If a step, or the line through the steps, implies a bandwidth that there is not.
        InputError
            If timings are too short or drift, or longer generations do not take longer.
        """
        settings, tick = self._settings(machine), tick_s()
        source = f"decode of {machine.name}"
        progress(f"load {settings.model}", 0.0)
        backend = load(settings.model, settings.dtype, settings.device, self.seed, settings.points, settings.steps, machine.cores)
        try:
            checked = [backend.loaded.check_weights(source)]
            lengths = prompt_lengths(settings.points, lambda context: backend.prompt_tokens(context, settings.steps))
            prompts = random_prompts(lengths, backend.loaded.vocabulary, self.seed)
            checked.append(distinct_sequences(prompts, BLOCK_TOKENS, source))
            backend.prefill(prompts, lambda share: progress("prefill", 0.05 + 0.25 * share))
            rows = self._rows(backend, settings, progress)
            checked += backend.checked(source)[1:]
            if settings.on_accelerator and machine.accelerator is not None and machine.accelerator.unified:
                tiers = {"weights": backend.loaded.weight_bytes, "KV": backend.pool().pool_bytes}
                checked.append(unified_tiers(tiers, machine.memory_bytes, source))
            pool = backend.pool()
        finally:
            backend.close()
        shortest_s = min(rows["short_s"].min(), (rows["long_s"] - rows["short_s"]).min())
        if not shortest_s > 0:
            raise InputError(source, "long_s − short_s", f"{shortest_s:.3g} s", "more time for more tokens; other work disturbed the run")
        checked += [
            resolved(shortest_s, tick, source),
            steady(relative_times(rows, ("backend", "batch", "context_tokens"), "step_ms", source), source),
        ]
        bus, cache_bytes = _bus(machine, settings.device), 0 if settings.on_accelerator else machine.last_level_cache_bytes
        left_out: dict[str, str] = {}
        if bus is None:
            left_out["physical bound"] = "the bandwidth of the memory bus is not known"
        else:
            read_bytes = backend.loaded.weight_bytes - backend.loaded.unread_bytes
            per_token = backend.loaded.kv_bytes_per_token
            checked += steps_below_the_bus(rows, read_bytes, per_token, BEYOND_CACHE * cache_bytes, bus.gbps, source)
            checked += lines_below_the_bus(rows, read_bytes, per_token, bus.gbps, source, left_out)
        about = {
            "model": backend.loaded.model,
            "device": settings.device,
            "dtype": settings.dtype,
            "resident_dtype": backend.loaded.resident_dtype,
            "parameters": backend.loaded.parameters,
            "weight_bytes": backend.loaded.weight_bytes,
            "unread_weight_bytes": backend.loaded.unread_bytes,
            "layers": backend.loaded.layers,
            "kv_heads": backend.loaded.kv_heads,
            "head_dim": backend.loaded.head_dim,
            "kv_bytes_per_token": backend.loaded.kv_bytes_per_token,
            "kv_pool": {"bytes": pool.pool_bytes, "tokens": pool.tokens},
            "last_level_cache_bytes": machine.last_level_cache_bytes,
            "backends": {ROW_NAMES[way]: backend.described[way] for way in dict.fromkeys(way for way, _, _ in settings.points)},
            "step": f"(t({settings.steps}) - t({SHORT_TOKENS})) / {settings.steps - SHORT_TOKENS}, after an untimed run of each point",
            "context": "mean over the timed steps of the tokens that a step reads in each sequence, to half a token",
            "tokens": "distinct random token ids in each sequence; then the likeliest token, on the device, with no end of sequence",
            "threads": machine.cores,
            "repetitions": self.repetitions,
            "seed": self.seed,
            "tick_s": tick,
            "left_out": left_out,
        }
        return Outcome({"decode": rows}, about, checked)

    def _rows(self, backend: Backend, settings: _Settings, progress: Progress) -> pl.DataFrame:
        runs = [(*point, tokens) for point in settings.points for tokens in (SHORT_TOKENS, settings.steps)]

        def time_one(run: tuple[str, int, int, int]) -> float:
            way, batch, context, tokens = run
            return backend.decode_s(way, batch, backend.prompt_tokens(context, settings.steps), tokens)

        def say(run: tuple[str, int, int, int], share: float) -> None:
            way, batch, context, tokens = run
            progress(f"{way}, batch {batch}, context {context:,}: {tokens} tokens", 0.3 + 0.7 * share)

        timings = time_points(runs, self.repetitions, time_one, say)
        return differences(timings, settings.steps, settings.device, settings.dtype)

    def _settings(self, machine: Machine) -> _Settings:
        device = self.device or ("cuda" if machine.accelerator else "cpu")
        defaults = CPU if device == "cpu" else ACCELERATOR
        dtype = defaults.dtype if self.dtype is None else self.dtype
        steps = defaults.steps if self.steps is None else self.steps
        ways, batches, contexts = (
            default if own is None else own
            for own, default in (
                (self.backends, defaults.ways),
                (self.batches, defaults.batches),
                (self.contexts, defaults.contexts),
            )
        )
        if dtype not in DTYPES:
            raise InputError("decode", "dtype", dtype, f"one of {', '.join(DTYPES)}")
        if steps <= SHORT_TOKENS:
            raise InputError("decode", "steps", steps, f"more than the {SHORT_TOKENS} of the short run")
        if self.repetitions < 3:
            raise InputError("decode", "repetitions", self.repetitions, "3 or more: drift shows in no fewer")
        for way in ways:
            if way not in ROW_NAMES:
                raise InputError("decode", "backends", way, f"one of {', '.join(ROW_NAMES)}")
        if "vllm" in ways and len(ways) > 1:
            raise InputError("decode", "backends", ", ".join(ways), "vllm alone: its pool takes the memory of the device")
        if "vllm" in ways and device == "cpu":
            raise InputError("decode", "backends", "vllm on a CPU", "vllm on an accelerator")
        for field, values in (("batches", batches), ("contexts", contexts), ("backends", ways)):
            if not values or len(set(values)) != len(values):
                raise InputError("decode", field, ", ".join(map(str, values)) or "none", "one or more, each once")
        if min(batches) < 1 or min(contexts) < steps + BLOCK_TOKENS:
            found = f"batch {min(batches)}, context {min(contexts)}"
            raise InputError("decode", "points", found, f"batches of 1 or more, contexts of {steps + BLOCK_TOKENS} or more")
        chosen = self.batches is None and self.contexts is None
        points = sweep(ways, batches, contexts, MOST_TOKENS if chosen else None, corners=self.backends is None)
        model = self.model or fitting_model(machine, device, defaults, dtype, points)
        return _Settings(model, dtype, device, steps, points)


def sweep(
    ways: Sequence[str], batches: Sequence[int], contexts: Sequence[int], most_tokens: int | None, corners: bool
) -> tuple[Point, ...]:
    """Points of a sweep.

    Parameters
    ----------
    ways, batches, contexts : sequence
    most_tokens : int, optional
        Points with more KV tokens are left out.
    corners : bool
        Whether ways after the first have the smallest and largest batch and context alone.

    Returns
    -------
    tuple of (way, batch, context)
    """
    ends = {(batch, context) for batch in (min(batches), max(batches)) for context in (min(contexts), max(contexts))}
    pairs = [
        (batch, context)
        for batch in sorted(batches)
        for context in sorted(contexts)
        if most_tokens is None or batch * context <= most_tokens
    ]
    return tuple((way, *pair) for way in ways for pair in pairs if way == ways[0] or not corners or pair in ends)


def prompt_lengths(points: Sequence[Point], prompt_tokens: Callable[[int], int]) -> list[int]:
    """Tokens of each sequence's prompt: the longest that a point with that many sequences asks for; never longer than the one before.

    Parameters
    ----------
    points : sequence of (way, batch, context)
    prompt_tokens : callable
        Prompt that a context needs [tokens].

    Returns
    -------
    list of int
        One a sequence of the largest batch.
    """
    return [
        max(prompt_tokens(context) for _, batch, context in points if batch > sequence)
        for sequence in range(max(batch for _, batch, _ in points))
    ]


def random_prompts(lengths: Sequence[int], vocabulary: int, seed: int) -> list[list[int]]:
    """Uniform token ids, each sequence its own.

    Parameters
    ----------
    lengths : sequence of int
        Tokens of each sequence.
    vocabulary : int
        Ids are below it.
    seed : int
        Of the draws.
    """
    rng = np.random.default_rng(seed)
    return [rng.integers(vocabulary, size=length).tolist() for length in lengths]


def differences(timings: Sequence[Timing[tuple[str, int, int, int]]], steps: int, device: str, dtype: str) -> pl.DataFrame:
    """Rows of :data:`kvtier.measure.kept.DECODE` from timings of a short and a long run of each point.

    Parameters
    ----------
    timings : sequence of Timing
        Points are (way, batch, context, generated tokens).
    steps : int
        Generated tokens of the long runs.
    device, dtype : str
        Written into each row.

    Returns
    -------
    DataFrame
        One row a point and repetition, in the order of the timings; ``step_ms`` is (long − short) / (steps − 2).
    """
    seconds = {(timing.repetition, *timing.point): timing.seconds for timing in timings}
    rows = []
    for (repetition, way, batch, context, tokens), long_s in seconds.items():
        if tokens != steps:
            continue
        short_s = seconds[repetition, way, batch, context, SHORT_TOKENS]
        rows.append(
            {
                "backend": ROW_NAMES[way],
                "device": device,
                "dtype": dtype,
                "batch": batch,
                "context_tokens": context,
                "repetition": repetition,
                "steps": steps,
                "short_s": short_s,
                "long_s": long_s,
                "step_ms": 1e3 * (long_s - short_s) / (steps - SHORT_TOKENS),
            }
        )
    return kept.DECODE.check(pl.DataFrame(rows))


def steps_below_the_bus(
    rows: pl.DataFrame, weight_bytes: int, kv_bytes_per_token: int, least_bytes: int, bus_gbps: float, source: str
) -> list[Checked]:
    """Refuse a point whose fastest step reads weights and KV faster than the bus; smaller ones than `least_bytes` may lie in a cache.

    Parameters
    ----------
    rows : DataFrame
        Columns :data:`kvtier.measure.kept.DECODE`.
    weight_bytes : int
        Weights that each step reads [B].
    kv_bytes_per_token : int
        KV of a token over all layers [B].
    least_bytes : int
        Steps that read less are left out [B].
    bus_gbps : float
        Bandwidth of the bus by its data sheet [GB/s].
    source : str
        Named in errors.

    Raises
    ------
    AboveTheBus
        For the first point that is.
    """
    read_bytes = weight_bytes + pl.col("batch") * pl.col("context_tokens") * kv_bytes_per_token
    sized = rows.with_columns(read_bytes=read_bytes, gbps=read_bytes / pl.col("step_ms") * 1e3 / GB).filter(
        pl.col("read_bytes") >= least_bytes
    )
    fastest = sized.group_by("backend", "batch", "context_tokens", maintain_order=True).agg(pl.col("gbps").max())
    subjects = [
        Bandwidth(source, f"weights and KV of one step, {backend}, {batch} × {context:,}", gbps)
        for backend, batch, context, gbps in fastest.iter_rows()
    ]
    return physical_bound(subjects, bus_gbps) if subjects else []


def lines_below_the_bus(
    rows: pl.DataFrame, weight_bytes: int, kv_bytes_per_token: int, bus_gbps: float, source: str, left_out: dict[str, str]
) -> list[Checked]:
    """Refuse a line through the medians of a backend whose paths are faster than the bus.

    The slope lies among the points. The intercept lies outside of them: if it is not clear of zero by twice its error it says nothing, and
    `left_out` gets the reason.

    Parameters
    ----------
    rows, weight_bytes, kv_bytes_per_token, bus_gbps, source
        As for :func:`steps_below_the_bus`.
    left_out : dict of str to str
        Changed: what was not held against the bus, and why.

    Raises
    ------
    AboveTheBus
        For the first path that is.
    """
    subjects = []
    medians = rows.group_by("backend", "batch", "context_tokens", maintain_order=True).agg(pl.col("step_ms").median())
    for (backend,), points in medians.group_by("backend", maintain_order=True):
        sizes = (points["batch"] * points["context_tokens"] * kv_bytes_per_token / GIB).to_list()
        if len(set(sizes)) < kept.LEAST_FIT_SIZES:
            left_out[f"line of {backend}"] = f"{len(set(sizes))} sizes of KV, and {kept.LEAST_FIT_SIZES} are asked for"
            continue
        line = fit.two_term(sizes, points["step_ms"].to_list(), f"{source}, {backend}")
        subjects.append(Bandwidth(line.source, "KV path", fit.kv_path_gbps(line).value))
        if line.intercept_ms.value > 2 * line.intercept_ms.standard_error:
            subjects.append(Bandwidth(line.source, "fixed path", fit.fixed_path_gbps(line, weight_bytes).value))
        else:
            left_out[f"fixed path of {backend}"] = f"an intercept of {line.intercept_ms.value:.3g} ms is not clear of zero"
    return physical_bound(subjects, bus_gbps) if subjects else []


def memory_bytes(shape: ModelConfig, dtype: str, points: Sequence[Point]) -> int:
    """Most memory of model and KV at a time: weights, KV of all prompts, and twice that of the largest point: a step copies it.

    Parameters
    ----------
    shape : ModelConfig
    dtype : str
        Of weights and KV.
    points : sequence of (way, batch, context)

    Returns
    -------
    int
        Estimate, with activations of the longest prompt [B].
    """
    tokens = sum(prompt_lengths(points, lambda context: context)) + 2 * max(batch * context for _, batch, context in points)
    # Activations of one prompt: a few times its hidden and feed-forward rows.
    longest = max(context for _, _, context in points)
    activations = 6 * longest * (shape.hidden + shape.ffn) * shapes.element_bytes(dtype)
    return shapes.parameters(shape) * shapes.element_bytes(dtype) + tokens * shapes.kv_bytes_per_token(shape, dtype) + activations


def shape_of(model: str) -> ModelConfig:
    """Shape of a model by name; only a folder's or the hub's needs transformers.

    Raises
    ------
    InputError
        If it has none that is known here.
    """
    if model in shapes.SHAPES:
        return shapes.SHAPES[model]
    from kvtier.kit.backends import transformers

    return transformers.shape_of(model)


def load(model: str, dtype: str, device: str, seed: int, points: Sequence[Point], steps: int, threads: int) -> Backend:
    """Load a model into the backend of its points.

    Parameters
    ----------
    model : str
        As in :class:`Decode`.
    dtype, device : str
        Type of the weights, and where they lie.
    seed : int
        Of weights that are random.
    points : sequence of (way, batch, context)
        All of vLLM, or none.
    steps : int
        Generated tokens of the long run.
    threads : int
        On a CPU.
    """
    positions = max(context for _, _, context in points) + steps + BLOCK_TOKENS
    if points[0][0] == "vllm":
        from kvtier.kit.backends.vllm import Vllm

        return Vllm(model, dtype, seed, positions, max(batch for _, batch, _ in points))
    from kvtier.kit.backends.transformers import Transformers

    return Transformers(model, dtype, device, seed, positions, threads)


def fitting_model(machine: Machine, device: str, defaults: Defaults, dtype: str, points: Sequence[Point]) -> str:
    """The default model, or the first smaller one that fits into nine tenths of the accelerator's free memory.

    Parameters
    ----------
    machine : Machine
    device : str
        On ``cpu`` it is the default.
    defaults : Defaults
    dtype : str
        Of weights and KV.
    points : sequence of (way, batch, context)

    Returns
    -------
    str
        Its name; the smallest if none fits.
    """
    if device == "cpu" or machine.accelerator is None:
        return defaults.model
    room = 0.9 * machine.accelerator.available_bytes
    models = (defaults.model, *SMALLER)
    return next((name for name in models if memory_bytes(shapes.SHAPES[name], dtype, points) <= room), models[-1])


def _bus(machine: Machine, device: str) -> Bus | None:
    if device == "cpu":
        return machine.bus
    return machine.accelerator.bus if machine.accelerator else None


def _bus_gbps(machine: Machine, device: str, otherwise: float) -> float:
    bus = _bus(machine, device)
    return bus.gbps if bus else otherwise
