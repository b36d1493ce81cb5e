"""A figure inside a notebook: its badge and caveat drawn in, what it says in words, and controls where it has some.

JupyterLab draws the specification; the build's page has the picture and makes it move where scripts run.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from kvtier.evidence.numbers import Number
from kvtier.publish import render, theme
from kvtier.publish.ledger import Quote

VEGA_LITE = 5
"""Newest version of Vega-Lite that JupyterLab 4.6 draws. What figures are made of means the same to the version that makes files."""

SPECIFICATION = f"application/vnd.vegalite.v{VEGA_LITE}+json"
"""Media type of a Vega-Lite specification."""

PICTURE, WORDS = "image/svg+xml", "text/plain"


def quote(number: Number, made_by: str) -> Quote:
    """A number that a notebook has just made, as a figure needs it: the figure's badge and caveat follow from its label.

    Parameters
    ----------
    number : Number
    made_by : str
        The notebook, in place of a rule.
    """
    return Quote(
        key=number.key,
        value=number.value,
        display=number.display,
        unit=number.unit,
        label=number.label,
        status=number.status,
        definition=number.definition,
        rule=made_by,
        params={},
        uncertainty=dict(number.uncertainty),
    )


class Shown:
    """A figure that a cell ends with.

    Parameters
    ----------
    figure : kvtier.publish.theme.Figure
        With parameters in its layers, if it has controls.

    Raises
    ------
    InputError
        If evidence label, source or caveat is not in the picture.
    """

    def __init__(self, figure: theme.Figure) -> None:
        self.figure = figure
        self.picture = render.svg(figure, render.spec(figure))

    @cached_property
    def specification(self) -> dict[str, Any]:
        """Vega-Lite, with its data inside."""
        return render.spec(self.figure) | {"$schema": f"https://vega.github.io/schema/vega-lite/v{VEGA_LITE}.json"}

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {SPECIFICATION: self.specification, PICTURE: self.picture, WORDS: self.figure.alt}
