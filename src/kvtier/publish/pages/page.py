"""A page from templates that can show a value in one way only: as a link to its papers."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from kvtier.errors import InputError
from kvtier.evidence.claims import MEANING as VERDICT_MEANING
from kvtier.evidence.labels import MEANING, SIMULATION_CAVEAT, Label
from kvtier.publish import series
from kvtier.publish.diagrams import Diagram
from kvtier.publish.documents import written
from kvtier.publish.drawing import NARROW, WIDE, Canvas
from kvtier.publish.facts import Fact, Facts, Kind, label_of
from kvtier.publish.pages import fonts
from kvtier.publish.pages.markup import anchor, badge, both_links, link, plain_text, table
from kvtier.publish.pages.papers import papers
from kvtier.publish.pages.runs import runs
from kvtier.publish.palette import DARK, LIGHT
from kvtier.publish.sources import Sources
from kvtier.publish.verdicts import ORDER, slug

TEMPLATES = Path(__file__).parents[1] / "templates" / "pages"


def drawing_of(diagram: Diagram, facts: Facts, width: float, *, page: bool = True) -> Canvas:
    """A diagram, drawn in a width.

    Raises
    ------
    InputError
        Naming the diagram and the width, where its words have no room or a value may not be shown.
    """
    canvas = Canvas(width, facts, page=page)
    try:
        diagram.draw(canvas)
    except InputError as error:
        raise InputError(f"diagram {diagram.number}, {width:g} px wide", error.field, error.found, error.expected) from None
    return canvas


def limits_of(diagram: Diagram, shown: Mapping[str, Fact]) -> str:
    """The line under a diagram's title: the standing caveat where a value is simulated, else its own."""
    return SIMULATION_CAVEAT if any(fact.label is Label.SIMULATED for fact in shown.values()) else diagram.limits


class Page:
    """The functions that a page's template may call.

    Parameters
    ----------
    facts : Facts
        The ledger and the published claims.
    sources : Sources
        Findings, retractions and survivals.
    charts : mapping of str to dict
        Charts by name, in page form.
    diagrams : mapping of str to Diagram
        Diagrams by number.
    """

    def __init__(self, facts: Facts, sources: Sources, charts: Mapping[str, Mapping[str, Any]], diagrams: Mapping[str, Diagram]) -> None:
        self.facts = facts
        self.sources = sources
        self.charts = charts
        self.diagrams = diagrams
        self.figures: list[str] = []
        self.environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(TEMPLATES),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            autoescape=True,
        )
        self.environment.globals.update(self.functions())

    def functions(self) -> dict[str, Callable[..., Any]]:
        """Name in the template to function."""
        values = (self.num, self.bare, self.signed, self.unc, self.plus_minus, self.stated, self.both, self.printed, self.verdict)
        reading = (self.facts.ledger.swept, self.has, self.value, self.grid, self.listing, self.keys)
        parts = (self.diagram, self.chart, self.retraction, self.finding, self.survival, self.part, badge)
        counting = (self.verdict_counts, self.retracted, self.label)
        return {function.__name__: function for function in (*values, *reading, *parts, *counting)} | {
            "policy_name": series.title,
            "papers": lambda: papers(self.facts),
            "runs": lambda: runs(self.facts),
            "written": written,
            "labels": lambda: [(label, slug(label), MEANING[label]) for label in Label],
            "verdicts": lambda: VERDICT_MEANING.items(),
            "caveat_text": lambda: SIMULATION_CAVEAT,
            "palettes": lambda: {"light": LIGHT, "dark": DARK},
            "font_faces": fonts.faces,
            "asset": lambda name: Markup((TEMPLATES / name).read_text(encoding="utf-8")),
            "slug": slug,
        }

    # Values

    def num(self, key: str) -> Markup:
        """A number with its unit."""
        return link(self.facts.num(key))

    def bare(self, key: str) -> Markup:
        """A number without its unit."""
        return link(self.facts.num(key, "bare"))

    def signed(self, key: str) -> Markup:
        """A difference, its sign always written."""
        return link(self.facts.num(key, "signed"))

    def unc(self, key: str) -> Markup:
        """The interval of a number."""
        return link(self.facts.num(key, "unc"))

    def plus_minus(self, key: str) -> Markup:
        """A number with its interval."""
        return link(self.facts.num(key, "plus_minus"))

    def stated(self, claim: str, position: int | None = None) -> Markup:
        """An input as the package states it."""
        return link(self.facts.stated(claim, position))

    def both(self, claim: str, position: int = 0, key: str = "") -> Markup:
        """A published value, and what it is when recomputed."""
        return both_links(self.facts.both(claim, position, key))

    def printed(self, claim: str, position: int | None = None) -> Markup:
        """A published value as printed; struck through where it was taken back (which its box alone may show)."""
        withdrawn = self.facts.claims.withdrawn(claim)
        return link(self.facts.retracted(claim, position) if withdrawn else self.facts.published(claim, position))

    def verdict(self, claim: str) -> Markup:
        """The verdict on a claim, as a link to it."""
        word = self.facts.claims.verdict(claim)
        self.facts.used.setdefault(f"c/{claim}", Fact(f"c/{claim}", "", 0.0, Label(self.facts.claims[claim]["label"]), Kind.PUBLISHED))
        return Markup('<a class="verdict {}" href="#c/{}">{}</a>').format(slug(word), claim, word)

    def value(self, key: str) -> float:
        """Full precision of a number, for the data of what a reader can move; it is never printed."""
        return self.facts.quote(key).value

    def label(self, key: str) -> Label:
        """Evidence class of a number, for its badge."""
        return self.facts.quote(key).label

    def has(self, key: str) -> bool:
        """Whether the ledger has a key, or one that a pattern matches."""
        return bool(self.facts.ledger.matches(key))

    # Tables

    def keys(self, *patterns: str) -> Markup:
        """The line that says where a table's numbers are found."""
        words = Markup(", ").join(Markup("<code>{}</code>").format(pattern) for pattern in patterns)
        return Markup('<p class="keys">{}: {}</p>').format("Keys" if len(patterns) > 1 or "<" in patterns[0] else "Key", words)

    def grid(
        self,
        pattern: str,
        rows: str,
        columns: str,
        *,
        caption: str,
        corner: str,
        show: str = "num",
        absent: str = "–",
        names: dict[str, str] | None = None,
    ) -> Markup:
        """A table over two swept values: `pattern` is a key with ``<rows>`` and ``<columns>`` in it."""
        across = self.facts.ledger.swept(pattern, columns)
        body = []
        for row in self.facts.ledger.swept(pattern, rows):
            keys = [pattern.replace(f"<{rows}>", row).replace(f"<{columns}>", column) for column in across]
            body.append([written(rows, row, names), *(link(self.facts.num(key, show)) if self.has(key) else absent for key in keys)])
        head = [corner, *(written(columns, word, names) for word in across)]
        return table(caption, head, body) + self.keys(pattern)

    def listing(self, *keys: str, caption: str) -> Markup:
        """A table with one row a number: what it is, its value, its class."""
        self.facts.ledger.one_experiment(keys)
        rows = [[self.facts.quote(key).definition.rstrip("."), self.plus_minus(key), badge(self.facts.quote(key).label)] for key in keys]
        return table(caption, ["What it is", "Value", "Class"], rows)

    # Figures

    def told(self, text: str, where: str) -> Markup:
        """A text with values by key, filled."""
        try:
            return Markup(self.environment.from_string(text).render())
        except jinja2.TemplateError as error:
            raise InputError(where, "text", error, "values by num(), stated(), both() and printed()") from None
        except InputError as error:
            raise InputError(where, error.field, error.found, error.expected) from None

    def _figure(
        self, identity: str, name: str, title: str, label: Label, source: str, limits: str, body: Markup, caption: Markup, more: Markup
    ) -> Markup:
        self.figures.append(identity)
        parts = [
            Markup('<figure id="{}" class="figure" aria-labelledby="{}-title" data-label="{}">').format(identity, identity, label),
            Markup('<div class="figure-head"><h3 id="{0}-title"><a class="anchor" href="#{0}">{1}</a> {2}</h3>{3}</div>').format(
                identity, name, title, badge(label, source)
            ),
            Markup('<p class="limits">{}</p>').format(limits) if limits else "",
            body,
            Markup("<figcaption>{}</figcaption>").format(caption) if caption else "",
            more,
            Markup("</figure>"),
        ]
        return Markup("\n").join(part for part in parts if part)

    def diagram(self, number: str) -> Markup:
        """A structural diagram, in both layouts, with its evidence label."""
        if number not in self.diagrams:
            raise InputError("diagrams", number, "no such diagram", f"one of {', '.join(self.diagrams)}")
        diagram, where = self.diagrams[number], f"diagram {number}"
        with self.facts.collecting() as shown:
            drawn = []
            alt = plain_text(self.told(diagram.alt, where))
            for layout, width in (("wide", WIDE), ("narrow", NARROW)):
                canvas = drawing_of(diagram, self.facts, width)
                drawn.append(Markup('<div class="drawing scrolls {}">{}</div>').format(layout, Markup(canvas.svg(alt))))
            caption = self.told(diagram.caption, where)
        label, limits = label_of(shown), limits_of(diagram, shown)
        name = f"Diagram {number}" if number[0].isdigit() else f"Figure {number.rpartition('.')[2]}" if "." in number else "Figure"
        return self._figure(
            anchor(number), name, diagram.title, label, diagram.source, limits, Markup("\n").join(drawn), caption, Markup("")
        )

    def chart(self, name: str, number: str = "", title: str = "") -> Markup:
        """A chart, in both layouts, with its evidence label and its data as a table."""
        if name not in self.charts:
            raise InputError("charts", name, "no such chart", f"one of {', '.join(self.charts)}")
        chart = self.charts[name]
        for key in chart["keys"]:
            self.facts.num(key)
        drawn = [
            Markup('<div class="drawing scrolls {}" data-made-by="{}"><svg role="group" aria-label="{}" {}</div>').format(
                layout, name, chart["alt"], Markup(chart[layout].partition("<svg ")[2])
            )
            for layout in ("wide", "narrow")
        ]
        # Words that the chart's own code has put together, from its table and the ledger.
        told = {
            field: Markup('<span data-made-by="{}">{}</span>').format(name, chart[field]) if chart[field] else Markup("")
            for field in ("title", "source", "caveat", "caption")
        }
        identity, called = (anchor(number), f"Diagram {number}") if number else (f"figure-{slug(name)}", "Figure")
        label, body = Label(chart["label"]), Markup("\n").join(drawn)
        return self._figure(
            identity, called, title or told["title"], label, told["source"], told["caveat"], body, told["caption"], self._data(chart)
        )

    def _data(self, chart: Mapping[str, Any]) -> Markup:
        """The rows behind a chart: the number of each row with its interval, beside what tells the row apart."""
        told = [
            column
            for column in chart["columns"]
            if column != "key" and not column.startswith(("lower", "upper", "lowest", "highest")) and not column.endswith("percent")
        ]
        place = {column: index for index, column in enumerate(chart["columns"])}
        rows = []
        for row in chart["rows"]:
            # Points between the numbers, that a curve is drawn through.
            if "key" in place and row[place["key"]] is None:
                continue
            about = ["" if row[place[column]] is None else _cell(row[place[column]]) for column in told]
            rows.append([*about, link(self.facts.num(row[place["key"]], "plus_minus")) if "key" in place else ""])
        head = [column.replace("_", " ") for column in told]
        shown = table(f"Data of the figure: {chart['title']}", [*head, "value"], rows)
        return Markup('<details class="data" data-made-by="{}"><summary>Data</summary>{}</details>').format(chart["name"], shown)

    # What was found and taken back

    def retraction(self, name: str) -> Markup:
        """The box of a retracted quantity: its values, struck through, what they rested on, and what is said instead."""
        entry = next((entry for entry in self.sources.retractions if entry.id == name), None)
        if entry is None:
            raise InputError("retractions", name, "no such entry", f"one of {', '.join(entry.id for entry in self.sources.retractions)}")
        where = f"retraction {name}"
        values = Markup(", ").join(link(self.facts.retracted(claim)) for claim in entry.shown)
        for claim in entry.claims:
            # Where the package repeats it: no words of the box, but a card.
            self.facts.retracted(claim)
        told = (
            Markup("<dt>{}</dt><dd>{}</dd>").format(head, self.told(text, where))
            for head, text in (("Rested on", entry.rested_on), ("Contradicted by", entry.contradicted_by), ("Instead", entry.replaced_by))
        )
        shape = (
            '<div class="retraction" role="note" id="retraction-{0}" aria-labelledby="retraction-{0}-title"><h4 id="retraction-{0}-title">'
        )
        shape += '<span class="stamp">Retracted</span> {1}</h4><p class="values">{2}</p><dl>{3}</dl></div>'
        return Markup(shape).format(slug(name), entry.quantity, values, Markup("").join(told))

    def finding(self, name: str) -> Markup:
        """The box of a finding about the published package."""
        found = next((found for found in self.sources.findings if found.id == name), None)
        if found is None:
            raise InputError("findings", name, "no such finding", "D1 and on")
        shape = '<div class="finding" role="note" id="finding-{0}" aria-labelledby="finding-{0}-title"><h4 id="finding-{0}-title">'
        shape += '<span class="stamp">Found here · {1}</span> {2}</h4><p>{3}</p></div>'
        return Markup(shape).format(slug(name), name, found.title, self.told(found.shows, f"finding {name}"))

    def survival(self) -> Markup:
        """What became of the results of Revision 2: one row a result."""
        rows = []
        for survival, fate in self.sources.survivals:
            was, now = (self.told(text, f"result {survival.id}") for text in (survival.was, survival.now))
            shown = Markup('<strong class="fate {}">{}</strong>').format(slug(fate), fate)
            rows.append([survival.result, was, now, shown])
        return table("What of Revision 2 survives Revision 3", ["Result", "Revision 2", "Revision 3", "It"], rows)

    def part(self, template: str) -> Markup:
        """A part of the page from its own template; simulated numbers in it bring the standing caveat."""
        with self.facts.collecting() as shown:
            text = Markup(self.environment.get_template(template).render())
        simulated = any(fact.label is Label.SIMULATED for fact in shown.values())
        return text + (Markup('<p class="standing-caveat">{}</p>').format(SIMULATION_CAVEAT) if simulated else Markup(""))

    def verdict_counts(self) -> list[tuple[str, str, str, Markup]]:
        """Each verdict that occurs: its word, its anchor, what it means, and how many of the published values have it."""
        found = Counter(record["verdict"] for record in self.facts.claims.records.values())
        shape = Markup('<span data-made-by="claims.json">{}</span>')
        return [(verdict, slug(verdict), VERDICT_MEANING[verdict], shape.format(found[verdict])) for verdict in ORDER if found[verdict]]

    def retracted(self) -> list[tuple[str, str]]:
        """Every retracted quantity: the anchor of its box, and its name."""
        return [(f"retraction-{slug(entry.id)}", entry.quantity) for entry in self.sources.retractions]


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return series.title(value) if isinstance(value, str) and value in series.STYLES else str(value)


def render(page: Page, template: str, **given: Any) -> str:
    """Fill a page's template.

    Raises
    ------
    InputError
        Naming the template, the line, and the key or name at fault.
    """
    try:
        return page.environment.get_template(template).render(**given)
    except InputError as error:
        raise InputError(f"{_place(error, template)}, {error.source}", error.field, error.found, error.expected) from None
    except jinja2.TemplateSyntaxError as error:
        raise InputError(error.filename or template, f"line {error.lineno}", error.message, "a template that parses") from None
    except jinja2.UndefinedError as error:
        raise InputError(_place(error, template), "name", error.message, "one that the environment defines") from None


def _place(error: BaseException, template: str) -> str:
    """Innermost template and line from which an error rose."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(str(TEMPLATES))]
    return f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else template
