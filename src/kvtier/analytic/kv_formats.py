"""How one cached element is stored: width, and the scales that a quantised cache keeps beside it."""

from __future__ import annotations

from dataclasses import dataclass

from kvtier.errors import InputError


@dataclass(frozen=True)
class Format:
    """Storage of the elements of a vector.

    Parameters
    ----------
    name : str
        As asked for.
    bits : int
        Width of an element.
    group : int, optional
        Elements that share one scale; None where no scale is kept for a token (one a tensor is not counted).
    scale_bytes : int
        Scale, and zero point if there is one, of a group [B].
    """

    name: str
    bits: int
    group: int | None = None
    scale_bytes: int = 0

    def __post_init__(self) -> None:
        for field in ("bits", *(["group"] if self.group is not None else [])):
            value = getattr(self, field)
            if type(value) is not int or not 0 < value <= 2**20:
                raise InputError(f"format {self.name}", field, value, "a whole number from 1 to 1,048,576")
        if type(self.scale_bytes) is not int or not 0 <= self.scale_bytes <= 2**10:
            raise InputError(f"format {self.name}", "scale_bytes", self.scale_bytes, "a whole number from 0 to 1,024")
        if self.scale_bytes and self.group is None:
            raise InputError(f"format {self.name}", "scale_bytes", self.scale_bytes, "0, or a group of elements that has the scale")

    def vector_bytes(self, elements: int) -> int:
        """One vector with its scales [B]; a scale never spans two vectors, and a vector ends on a whole byte."""
        groups = 0 if self.group is None else -(-elements // self.group)
        return -(-elements * self.bits // 8) + groups * self.scale_bytes

    @property
    def said(self) -> str:
        """Width and scales in words."""
        scales = "no scale a token" if self.group is None else f"{self.scale_bytes} B of scale for {self.group} elements"
        return f"{self.name}: {self.bits} bits an element, {scales}"


FORMATS: dict[str, Format] = {
    "fp32": Format("fp32", 32),
    "bf16": Format("bf16", 16),
    "fp16": Format("fp16", 16),
    "fp8": Format("fp8", 8),
    "int8": Format("int8", 8, 64, 4),
    "int4": Format("int4", 4, 64, 4),
    "int2": Format("int2", 2, 64, 4),
    "q8_0": Format("q8_0", 8, 32, 2),
    "q4_0": Format("q4_0", 4, 32, 2),
}
"""By name. fp8 has one scale a tensor. int8, int4, int2: groups of 64 with scale and zero point of 2 B each, as Hugging Face's quantised
caches default to. q8_0 and q4_0: blocks of 32 with one fp16 scale (GGML)."""

WEIGHTS: dict[str, Format] = {name: FORMATS[name] for name in ("fp32", "bf16", "fp16", "fp8")} | {
    "int8": Format("int8", 8),
    "int4": Format("int4", 4, 128, 4),
    "mxfp4": Format("mxfp4", 4, 32, 1),
}
"""Storage of weights, by name. int4: groups of 128 with scale and zero point of 2 B each (GPTQ and AWQ as commonly published). mxfp4:
blocks of 32 with a scale of 1 B (Open Compute Project, Microscaling Formats 1.0, 2023)."""


def named(name: str, formats: dict[str, Format], option: str) -> Format:
    """A format by its name, whatever its case.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    found = formats.get(name.lower())
    if found is None:
        raise InputError(option, "format", name, "one of " + ", ".join(formats))
    return found
