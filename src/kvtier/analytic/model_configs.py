"""Layouts from the ``config.json`` of a Hugging Face checkpoint.

Which fields count, and what an absent one means, is a matter of the model type. A type is read as the library's class of that type reads
it, and a field that such a class would fill with a default of its own is asked for. A type that is not known here is read only if every
field that matters is given.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kvtier.analytic.layouts import LARGEST, Kind, LayerGroup, Layout
from kvtier.errors import InputError
from kvtier.evidence.labels import Label
from kvtier.files import read_json

LAYER_TYPES = {
    "full_attention": Kind.FULL,
    "sliding_attention": Kind.SLIDING,
    "chunked_attention": Kind.CHUNKED,
    "linear_attention": Kind.STATE,
}
INDEX = "model.safetensors.index.json"


class Config:
    """Fields of one configuration, each checked as it is asked for.

    Parameters
    ----------
    path : str or Path
        For messages.
    fields : dict
    """

    def __init__(self, path: str | Path, fields: dict[str, Any]) -> None:
        self.path, self.fields = path, fields
        self.type = fields.get("model_type")
        self.notes: list[str] = []

    def refuse(self, field: str, found: object, expected: str) -> InputError:
        """An error about one field."""
        return InputError(self.path, field, found, expected)

    def has(self, field: str) -> bool:
        """Whether the field is given and not null."""
        return self.fields.get(field) is not None

    def number(self, *names: str, default: int | None = None) -> int:
        """The first of these fields that is given, a whole number above 0."""
        given = next((name for name in names if self.has(name)), None)
        if given is None and default is not None:
            return default
        value = "nothing" if given is None else self.fields[given]
        if type(value) is not int or not 0 < value <= LARGEST:
            shown = repr(value)[:60] if given else value
            raise self.refuse(given or names[0], shown, f"a whole number from 1 to {LARGEST:,}")
        return value

    def flag(self, field: str, default: bool) -> bool:
        """A field that is true or false."""
        value = self.fields.get(field, default)
        if type(value) is not bool:
            raise self.refuse(field, repr(value)[:60], "true or false")
        return value

    @property
    def layers(self) -> int:
        """Layers of the decoder."""
        return self.number("num_hidden_layers", "n_layer", "n_layers", "num_layers")

    @property
    def heads(self) -> int:
        """Query heads of a layer."""
        return self.number("num_attention_heads", "n_head", "n_heads")

    def derived_head_dim(self) -> int:
        """head_dim where it is given, else hidden size over query heads, as the class of this type has it."""
        if self.has("head_dim"):
            return self.number("head_dim")
        hidden = self.number("hidden_size", "n_embd", "d_model")
        if hidden % self.heads:
            raise self.refuse("hidden_size", hidden, f"a multiple of the {self.heads} heads, or head_dim to be given")
        return hidden // self.heads

    def window(self, absent_is_none: bool = False) -> int | None:
        """sliding_window, null for none; it must be there, unless the class of this type has none by default."""
        if "sliding_window" not in self.fields and not absent_is_none:
            raise self.refuse("sliding_window", "nothing", "a number of tokens, or null for none")
        return self.number("sliding_window") if self.has("sliding_window") else None

    def kinds(self, otherwise: Callable[[int], Kind]) -> list[Kind]:
        """Kind of each layer: as layer_types says, else as the type has it by position."""
        if not self.has("layer_types"):
            return [otherwise(layer) for layer in range(self._listed)]
        words = self.fields["layer_types"]
        if not isinstance(words, list) or len(words) != self.layers:
            found = f"{len(words)} entries" if isinstance(words, list) else repr(words)[:60]
            raise self.refuse("layer_types", found, f"a list of {self.layers}, one a layer")
        for word in words:
            if not isinstance(word, str) or word not in LAYER_TYPES:
                raise self.refuse("layer_types", repr(word)[:60], "one of " + ", ".join(LAYER_TYPES))
        return [LAYER_TYPES[word] for word in words]

    @property
    def _listed(self) -> int:
        """Layers, where they are told one by one."""
        if self.layers > 2**16:
            raise self.refuse("num_hidden_layers", self.layers, "at most 65,536")
        return self.layers


def _grouped(config: Config, kinds: Sequence[Kind], kv_heads: int, head_dim: int, window: int | None = None, **state: int | None) -> tuple:
    """Groups of the kinds present, in order of first appearance."""
    groups = []
    for kind in dict.fromkeys(kinds):
        layers = sum(other is kind for other in kinds)
        if kind is Kind.STATE:
            groups.append(LayerGroup(kind, layers, **state))
        elif kind is Kind.CROSS:
            groups.append(LayerGroup(kind, layers))
        elif kind is Kind.FULL:
            groups.append(LayerGroup(kind, layers, kv_heads, head_dim))
        else:
            if window is None:
                field = "attention_chunk_size" if kind is Kind.CHUNKED else "sliding_window"
                raise config.refuse(field, "nothing", f"a number of tokens, which its {layers} {kind} layers need")
            groups.append(LayerGroup(kind, layers, kv_heads, head_dim, window_tokens=window))
    return tuple(groups)


def _uniform(config: Config, kv_heads: int, head_dim: int, window: int | None = None) -> tuple:
    """All layers alike."""
    if window is None:
        return (LayerGroup(Kind.FULL, config.layers, kv_heads, head_dim),)
    return (LayerGroup(Kind.SLIDING, config.layers, kv_heads, head_dim, window_tokens=window),)


def _grouped_query(config: Config) -> tuple:
    """Full attention; without num_key_value_heads every head has its own keys and values."""
    return _uniform(config, config.number("num_key_value_heads", default=config.heads), config.derived_head_dim())


def _explicit_heads(config: Config) -> tuple:
    """Full attention whose class has a head_dim of its own, so that it must be given."""
    return _uniform(config, config.number("num_key_value_heads"), config.number("head_dim"))


def _multi_head(config: Config) -> tuple:
    """Full attention, each head with its own keys and values."""
    return _uniform(config, config.heads, config.derived_head_dim())


def _mistral(config: Config) -> tuple:
    """All layers slide if there is a window; the class has a default one, so that the field must be there."""
    return _uniform(config, config.number("num_key_value_heads"), config.derived_head_dim(), config.window())


def _windowed(config: Config) -> tuple:
    """As mistral, but that the class has no window by default."""
    kv_heads = config.number("num_key_value_heads", default=config.heads if config.type == "phi3" else None)
    return _uniform(config, kv_heads, config.derived_head_dim(), config.window(absent_is_none=True))


def _qwen(config: Config, head_dim: int) -> tuple:
    """A window counts only with use_sliding_window: in the layers from max_window_layers on, in all of qwen3_moe."""
    kv_heads, slides = config.number("num_key_value_heads"), config.flag("use_sliding_window", False)
    if not slides:
        if config.has("sliding_window"):
            config.notes.append("sliding_window is ignored: use_sliding_window is false")
        if config.has("layer_types") and Kind.SLIDING in config.kinds(lambda _: Kind.FULL):
            raise config.refuse("layer_types", "sliding_attention", "full_attention, for use_sliding_window is false")
        return _uniform(config, kv_heads, head_dim)
    if config.type == "qwen3_moe" and not config.has("layer_types"):
        return _uniform(config, kv_heads, head_dim, config.window())
    if config.type == "qwen2_moe" and not config.has("layer_types"):
        raise config.refuse("use_sliding_window", "true", "layer_types beside it: releases of the library differ in which layers slide")
    first = LARGEST if config.has("layer_types") else config.number("max_window_layers")
    kinds = config.kinds(lambda layer: Kind.SLIDING if layer >= first else Kind.FULL)
    return _grouped(config, kinds, kv_heads, head_dim, config.window())


def _qwen2(config: Config) -> tuple:
    return _qwen(config, config.derived_head_dim())


def _qwen3(config: Config) -> tuple:
    return _qwen(config, config.number("head_dim"))


def _qwen3_next(config: Config) -> tuple:
    """Gated DeltaNet, and full attention in every n-th layer."""
    every = 0 if config.has("layer_types") else config.number("full_attention_interval")
    kinds = config.kinds(lambda layer: Kind.STATE if (layer + 1) % every else Kind.FULL)
    fields = ("linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim", "linear_value_head_dim", "linear_conv_kernel_dim")
    state = None
    if all(map(config.has, fields)):
        key_heads, value_heads, key, value, kernel = map(config.number, fields)
        state = 4 * value_heads * key * value + 2 * (kernel - 1) * (2 * key_heads * key + value_heads * value)
    kv_heads, head_dim = config.number("num_key_value_heads"), config.number("head_dim")
    return _grouped(config, kinds, kv_heads, head_dim, state_bytes=state)


def _jamba(config: Config) -> tuple:
    """Mamba, and full attention once a period."""
    period, offset = config.number("attn_layer_period"), config.fields.get("attn_layer_offset")
    if type(offset) is not int or not 0 <= offset < period:
        raise config.refuse("attn_layer_offset", repr(offset)[:60], f"a whole number from 0 to {period - 1}")
    kinds = config.kinds(lambda layer: Kind.FULL if layer % period == offset else Kind.STATE)
    state = None
    if all(map(config.has, ("mamba_expand", "mamba_d_state", "mamba_d_conv", "hidden_size"))):
        width = config.number("mamba_expand") * config.number("hidden_size")
        state = 4 * width * config.number("mamba_d_state") + 2 * width * (config.number("mamba_d_conv") - 1)
    return _grouped(config, kinds, config.number("num_key_value_heads"), config.derived_head_dim(), state_bytes=state)


def _alternating(config: Config, every: int, head_dim: int, kv_heads: int, window: int | None) -> tuple:
    """Sliding layers, and a full one at each multiple of `every`, counted from 1."""
    kinds = config.kinds(lambda layer: Kind.SLIDING if (layer + 1) % every else Kind.FULL)
    return _grouped(config, kinds, kv_heads, head_dim, window)


def _gemma2(config: Config) -> tuple:
    return _alternating(config, 2, config.number("head_dim"), config.number("num_key_value_heads"), config.window())


def _gemma3(config: Config) -> tuple:
    """Published configurations leave out what equals a default of the class, so that its defaults are taken, and named."""
    defaults = {
        "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "sliding_window": 4096, "sliding_window_pattern": 6,
    }  # fmt: skip
    if config.has("layer_types"):
        defaults.pop("sliding_window_pattern")
    if config.has("_sliding_window_pattern"):
        config.fields["sliding_window_pattern"] = config.fields["_sliding_window_pattern"]
    if taken := {name: value for name, value in defaults.items() if not config.has(name)}:
        config.notes.append(f"defaults of model type {config.type}: " + ", ".join(f"{name} {value}" for name, value in taken.items()))
    config.fields.update(taken)
    every = config.number("sliding_window_pattern", default=1)
    return _alternating(config, every, config.number("head_dim"), config.number("num_key_value_heads"), config.window())


def _cohere2(config: Config) -> tuple:
    every = 1 if config.has("layer_types") else config.number("sliding_window_pattern")
    return _alternating(config, every, config.derived_head_dim(), config.number("num_key_value_heads"), config.window())


def _gpt_oss(config: Config) -> tuple:
    return _alternating(config, 2, config.number("head_dim"), config.number("num_key_value_heads"), config.window())


def _llama4(config: Config) -> tuple:
    """Chunked attention in the layers with rotary positions, full in those without, which no_rope_layers marks with 0."""
    marks = config.fields.get("no_rope_layers") or None
    every = 0 if marks or config.has("layer_types") else config.number("no_rope_layer_interval", default=4)
    if marks is not None and (not isinstance(marks, list) or len(marks) != config.layers or not all(mark in (0, 1) for mark in marks)):
        raise config.refuse("no_rope_layers", repr(marks)[:60], f"a list of {config.layers} times 0 or 1")
    kinds = config.kinds(lambda layer: Kind.CHUNKED if (marks[layer] if marks else (layer + 1) % every) else Kind.FULL)
    chunk = config.number("attention_chunk_size") if Kind.CHUNKED in kinds else None
    return _grouped(config, kinds, config.number("num_key_value_heads"), config.number("head_dim"), chunk)


def _latent(config: Config) -> tuple:
    """Multi-head latent attention."""
    head_dim = None
    if config.has("qk_nope_head_dim"):
        head_dim = config.number("qk_nope_head_dim") + config.number("qk_rope_head_dim")
    value_dim = config.number("v_head_dim") if config.has("v_head_dim") else None
    latent, rope = config.number("kv_lora_rank"), config.number("qk_rope_head_dim")
    return (LayerGroup(Kind.LATENT, config.layers, None, head_dim, value_dim, latent_dim=latent, rope_dim=rope),)


def _falcon(config: Config) -> tuple:
    """One KV head with multi_query, num_kv_heads with the new decoder architecture, else one a query head."""
    if config.flag("new_decoder_architecture", False):
        kv_heads = config.number("num_kv_heads", "n_head_kv", default=config.heads)
    else:
        kv_heads = 1 if config.flag("multi_query", True) else config.heads
    return _uniform(config, kv_heads, config.derived_head_dim())


def _bigcode(config: Config) -> tuple:
    return _uniform(config, 1 if config.flag("multi_query", True) else config.heads, config.derived_head_dim())


def _chatglm(config: Config) -> tuple:
    grouped = config.flag("multi_query_attention", False)
    return _uniform(config, config.number("multi_query_group_num") if grouped else config.heads, config.number("kv_channels"))


def _mllama(config: Config) -> tuple:
    """Layers of cross-attention hold the KV of the image."""
    crossed = config.fields.get("cross_attention_layers")
    if not isinstance(crossed, list) or not all(type(layer) is int and 0 <= layer < config.layers for layer in crossed):
        raise config.refuse("cross_attention_layers", repr(crossed)[:60], f"a list of layers from 0 to {config.layers - 1}")
    kinds = config.kinds(lambda layer: Kind.CROSS if layer in crossed else Kind.FULL)
    return _grouped(config, kinds, config.number("num_key_value_heads"), config.derived_head_dim())


def _dbrx(config: Config) -> tuple:
    attention = config.fields.get("attn_config")
    if not isinstance(attention, dict):
        raise config.refuse("attn_config", repr(attention)[:60], "a mapping with kv_n_heads")
    return _uniform(config, Config(config.path, attention).number("kv_n_heads"), config.derived_head_dim())


READERS: dict[str, Callable[[Config], tuple]] = {
    **dict.fromkeys(
        ("llama", "cohere", "granite", "granitemoe", "internlm2", "olmo", "olmo2", "stablelm", "deepseek", "phi"), _grouped_query
    ),
    **dict.fromkeys(("gemma", "glm", "glm4", "glm4_moe"), _explicit_heads),
    **dict.fromkeys(("gpt2", "gptj", "gpt_neox", "opt", "bloom"), _multi_head),
    "mistral": _mistral,
    **dict.fromkeys(("mixtral", "phi3", "starcoder2"), _windowed),
    **dict.fromkeys(("qwen2", "qwen2_moe", "qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text"), _qwen2),
    **dict.fromkeys(("qwen3", "qwen3_moe"), _qwen3),
    "qwen3_next": _qwen3_next,
    "jamba": _jamba,
    "gemma2": _gemma2,
    "gemma3_text": _gemma3,
    "cohere2": _cohere2,
    "gpt_oss": _gpt_oss,
    "llama4_text": _llama4,
    **dict.fromkeys(("deepseek_v2", "deepseek_v3", "kimi_k2"), _latent),
    "falcon": _falcon,
    "gpt_bigcode": _bigcode,
    "chatglm": _chatglm,
    "mllama_text_model": _mllama,
    "dbrx": _dbrx,
}
"""By model type, how the groups of layers are found."""

EXPLICIT = ("num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim", "sliding_window")
OTHER_CACHES = (
    "kv_lora_rank",
    "index_head_dim",
    "attention_chunk_size",
    "attn_layer_period",
    "cross_attention_layers",
    "ssm_cfg",
    "state_size",
)
"""Fields that tell of a cache which those of `EXPLICIT` do not describe."""


def _explicit(config: Config) -> tuple:
    """An unknown type, read only if it says everything and nothing else."""
    known = f"a known model type, or all of {', '.join(EXPLICIT)} (null for no window)"
    missing = [name for name in EXPLICIT if name not in config.fields]
    if missing or any(map(config.has, OTHER_CACHES)):
        lacks = f"without {', '.join(missing)}" if missing else f"with {next(filter(config.has, OTHER_CACHES))}"
        raise config.refuse("model_type", f"{config.type!r}"[:60] + f" {lacks}", known)
    config.notes.append(f"model type {config.type!r} is not known: read from its explicit fields")
    kv_heads, head_dim, window = config.number("num_key_value_heads"), config.number("head_dim"), config.window()
    if config.has("layer_types"):
        return _grouped(config, config.kinds(lambda _: Kind.FULL), kv_heads, head_dim, window)
    return _uniform(config, kv_heads, head_dim, window)


def of_fields(fields: object, path: str | Path = "config.json", name: str | None = None) -> Layout:
    """Layout from a parsed configuration; of a model with several inputs, that of its text.

    Parameters
    ----------
    fields : dict
    path : str or Path
        For messages and as the source.
    name : str, optional
        Of the model; the last part of ``_name_or_path``, else the folder's, where not given.

    Raises
    ------
    InputError
        In one line that names the file and the field.
    """
    if not isinstance(fields, dict):
        raise InputError(path, "file", f"a {type(fields).__name__}", "a mapping of named fields")
    outer, notes = fields, []
    if isinstance(fields.get("text_config"), dict):
        # What the text's own part leaves to the outer one is not for us to guess.
        fields = fields["text_config"]
        notes.append(f"text part of model type {outer.get('model_type')!r}: what its other inputs add is not counted")
    config = Config(path, dict(fields))
    if config.type is None and outer.get("model_type") is not None and outer is not fields:
        config.type = f"{outer['model_type']}_text"
    if not isinstance(config.type, str):
        raise InputError(path, "model_type", "nothing" if config.type is None else repr(config.type)[:60], "the name of a model type")
    if config.flag("is_encoder_decoder", False):
        raise InputError(path, "is_encoder_decoder", "true", "a decoder: the KV of an encoder does not grow with the text")
    try:
        groups = READERS.get(config.type, _explicit)(config)
        if config.has("sliding_window") and not config.notes and not any(group.kind is Kind.SLIDING for group in groups):
            config.notes.append(f"sliding_window is ignored: layers of model type {config.type} have none")
        if isinstance(quantised := outer.get("quantization_config"), dict):
            config.notes.append(f"weights are quantised ({str(quantised.get('quant_method'))[:20]}): state how with --weights-dtype")
        context = config.fields.get("max_position_embeddings")
        return Layout(
            name or _name(outer, Path(path)),
            groups,
            query_heads=config.heads,
            context_tokens=context if type(context) is int and 0 < context <= LARGEST else None,
            label=Label.VENDOR,
            source=f"{path}, model type {config.type}",
            notes=(*notes, *config.notes),
        )
    except InputError as error:
        # What a layout refuses names the layout, and not the file that it was read from.
        field = error.field if error.source == str(path) else f"{error.source}, {error.field}"
        raise InputError(path, field, error.found, error.expected) from None


def _name(fields: dict[str, Any], path: Path) -> str:
    """What a configuration calls its model, else the name of its folder."""
    own = str(fields.get("_name_or_path") or "").rstrip("/").rpartition("/")[2][:80]
    return own if own.isprintable() and own else path.resolve().parent.name or "model"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = [field for field, _ in pairs]
    if len(set(fields)) < len(fields):
        raise ValueError(f"{next(field for field in fields if fields.count(field) > 1)!r} twice")
    return dict(pairs)


def _parsed(path: Path) -> Any:
    if path.exists() and not path.is_file():
        raise InputError(path, "file", "a directory" if path.is_dir() else "a pipe or device", "a readable JSON file")
    try:
        read_json(path)
        # Of two values json takes the last, and a reader may look at the first.
        return json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_unique)
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(path, "file", str(error)[:80], "complete JSON, each field once, with numbers of ordinary size") from None


def load(path: str | Path) -> Layout:
    """Layout from a ``config.json``, or from a folder with one; a folder's weights are those of its safetensors index.

    Raises
    ------
    InputError
        If the file is missing, truncated, or does not say what its model type needs.
    """
    path = Path(path)
    file = path / "config.json" if path.is_dir() else path
    layout = of_fields(_parsed(file), file)
    index = file.with_name(INDEX)
    if not index.is_file():
        return layout
    listed = _parsed(index)
    metadata = listed.get("metadata") if isinstance(listed, dict) else None
    total = metadata.get("total_size") if isinstance(metadata, dict) else None
    if type(total) is not int or not 0 < total <= 2**60:
        raise InputError(index, "metadata.total_size", repr(total)[:60], "the bytes of all tensors")
    return replace(layout, weight_bytes=total)
