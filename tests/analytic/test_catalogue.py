"""The catalogue: complete, checked, in agreement with the published shapes, and found under the names that people use."""

from pathlib import Path

import pytest
import yaml

from kvtier.analytic.catalogue import CATALOGUE, Catalogue
from kvtier.analytic.footprint import Footprint
from kvtier.analytic.kv_formats import FORMATS
from kvtier.errors import InputError
from kvtier.evidence.labels import Label

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def catalogue():
    return Catalogue()


def test_has_many_models_each_with_papers(catalogue):
    assert len(catalogue) >= 30
    for layout in catalogue.values():
        assert layout.label in (Label.VENDOR, Label.LITERATURE)
        assert layout.source
        assert layout.query_heads
        assert layout.parameters


def test_inputs_of_the_build_are_the_file_of_the_package():
    assert (ROOT / "data/inputs/catalogue.yaml").resolve() == CATALOGUE.resolve()


def test_agrees_with_the_published_shapes(catalogue, models):
    compared = 0
    for key, model in models.items():
        if key in catalogue:
            compared += 1
            assert Footprint(catalogue[key], FORMATS["bf16"]).bytes_per_token == model.kv_bytes_per_token
            assert model.query_heads in (None, catalogue[key].query_heads)
    assert compared == len(models) - 1  # Llama-3 70B with KV in fp8 is a storage of a model here, and no model.


@pytest.mark.parametrize(
    ("asked", "model"),
    [
        ("Llama-3.1-8B", "Llama-3.1-8B"),
        ("llama-3.1-8b", "Llama-3.1-8B"),
        ("meta-llama/Llama-3.1-8B-Instruct", "Llama-3.1-8B"),
        ("meta-llama/Meta-Llama-3-8B", "Llama-3-8B"),
        ("meta-llama/Llama-2-7b-chat-hf", "Llama-2-7B"),
        ("llama3_1_8b", "Llama-3.1-8B"),
        ("Llama 3.1 8B", "Llama-3.1-8B"),
        ("google/gemma-2-9b-it", "Gemma-2-9B"),
        ("deepseek-ai/DeepSeek-R1", "DeepSeek-V3"),
        ("openai/gpt-oss-20b", "gpt-oss-20b"),
        ("Qwen/Qwen3-235B-A22B-Instruct-2507", "Qwen3-235B-A22B"),
        ("command-r+", "Command-R+"),
    ],
)
def test_found_under_the_names_that_people_use(catalogue, asked, model):
    assert catalogue.find(asked).model == model


def test_unknown_model_is_told_the_nearest(catalogue):
    with pytest.raises(InputError, match=r"found 'llama-3\.1-9b', expected a name such as .*Llama-3\.1-8B") as caught:
        catalogue.find("llama-3.1-9b")
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="expected a name that `kvtier size --list` prints"):
        catalogue.find("0")
    with pytest.raises(InputError, match="expected a name"):
        catalogue.find("x\n" * 1000)


ONE = {
    "name": "One-1B",
    "layers": [{"kind": "full", "layers": 2, "kv_heads": 8, "head_dim": 64}],
    "label": "Vendor specification",
    "source": "a",
}


def changed(**fields):
    return {"one": {name: value for name, value in (ONE | fields).items() if value is not None}}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, "models: found none"),
        ({"One": ONE}, "One: found a key, expected a word of a-z"),
        ({"one": 3}, "one: found 3"),
        (changed(source=None), r"one\.source: found nothing"),
        (changed(source=" "), r"one\.source: found ' ', expected words"),
        (changed(label="Rumour"), r"one\.label: found 'Rumour', expected one of"),
        (changed(colour="red"), r"one\.colour: found an unknown field"),
        (changed(parameters="8B"), r"one, model One-1B, parameters: found 8B"),
        (changed(stored="fp7"), r"one\.stored: found 'fp7'"),
        (changed(aliases="Two"), r"one\.aliases: found Two"),
        (changed(layers=[]), "one, model One-1B, layers: found none that caches KV"),
        (changed(layers=[{"kind": "full", "heads": 8}]), r"one\.layers"),
        (changed(layers=[{"layers": 8}]), "found nothing, expected one of full"),
        (changed(layers=[{"kind": "full", "layers": 8, "kv_heads": 8}]), "one, full layers, head_dim: found nothing"),
        (changed(query_heads=12), "one, model One-1B, query_heads: found 12"),
        (
            {"one": ONE, "two": ONE | {"name": "two", "aliases": ["ONE 1b"]}},
            r"two\.name: found two, expected a name that one does not have",
        ),
    ],
)
def test_bad_catalogue_is_refused(tmp_path, document, message):
    path = tmp_path / "catalogue.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        Catalogue(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
