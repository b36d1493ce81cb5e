"""The ledger that a page of the tests is made from: the published copy, its analytic numbers made anew by the code at hand."""

import json
from pathlib import Path
from types import SimpleNamespace

from kvtier.analytic.geometry import load_models, reference_model
from kvtier.analytic.inputs import load_platform
from kvtier.analytic.numbers import attention, capacity, scoring, tiers
from kvtier.analytic.tables import attention as attention_tables
from kvtier.analytic.tables import capacity as capacity_tables
from kvtier.analytic.tables import scoring as scoring_tables
from kvtier.analytic.tables import tiers as tiers_tables
from kvtier.evidence import numbers
from kvtier.files import read_yaml
from kvtier.publish.facts import Facts
from kvtier.publish.pages import lint
from kvtier.publish.pages.page import Page
from kvtier.publish.sources import Given, read

ROOT = Path(__file__).resolve().parents[2]
MODELS, PLATFORM = ROOT / "data/inputs/models.csv", ROOT / "data/inputs/platform.yaml"


def analytic(models, platform):
    """Rule to its numbers, as the workflow makes them."""
    config = read_yaml(ROOT / "config/full.yaml")["analytic"]
    model = reference_model(models, MODELS)
    tables = {
        "tabulate_capacity": capacity_tables.build(models, model, platform, config["context_tokens"], config["users"]),
        "tabulate_tiers": tiers_tables.build(model, platform),
        "tabulate_attention": attention_tables.build(models, model, platform, config["distance_tokens"]),
        "tabulate_scoring": scoring_tables.build(platform, config["ema_alpha"]),
    }
    return {
        "tabulate_capacity": capacity.numbers(models, model, platform, tables["tabulate_capacity"]),
        "tabulate_tiers": tiers.numbers(model, platform, tables["tabulate_tiers"]),
        "tabulate_attention": attention.numbers(model, platform, tables["tabulate_attention"]),
        "tabulate_scoring": scoring.numbers(platform, tables["tabulate_scoring"]),
    }


def written(folder: Path) -> Path:
    """The ledger as a file in `folder`."""
    records = json.loads((ROOT / "data/numbers.json").read_text(encoding="utf-8"))
    for rule, found in analytic(load_models(MODELS), load_platform(PLATFORM)).items():
        fragment = folder / f"{rule}.json"
        numbers.write(fragment, found, SimpleNamespace(rule=rule, params={}, input=["data/inputs/platform.yaml"]))
        records |= json.loads(fragment.read_text(encoding="utf-8"))
    path = folder / "numbers.json"
    path.write_text(json.dumps(records, ensure_ascii=False), encoding="utf-8")
    return path


FRAME = """{% extends "base.html.j2" %}{% block title %}Try{% endblock %}{% block content %}<h1>Try</h1><h2>All</h2><h3>Widgets</h3>
{% for name in names %}{{ part("try/%s.html.j2" % name) }}{% endfor %}{% endblock %}
{% block scripts %}<script>{{ asset("formulas.js") }}</script><script>{{ asset("try.js") }}</script>{% endblock %}"""


def page(folder: Path, names):
    """A page of what a reader can move, and nothing else."""
    published = ROOT / "data/published"
    given = Given(
        written(folder),
        ROOT / "data/claims.json",
        sorted((published / "claims").glob("*.yaml")),
        *(published / name for name in ("findings.yaml", "retractions.yaml", "survival.yaml")),
    )
    ledger, sources = read(given)
    made = Page(Facts(ledger, sources.claims), sources, {}, {})
    path = folder / "try.html"
    path.write_text(made.environment.from_string(FRAME).render(names=names), encoding="utf-8")
    lint.check(path, path.read_text(encoding="utf-8"), sorted(published.glob("allowed_*.yaml")), made)
    return path, made
