"""From source to PDF: errors in one line, the same bytes, and the paper itself."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typst

from kvtier.errors import InputError
from kvtier.files import read_yaml
from kvtier.publish.paper import transcript, typeset
from kvtier.publish.sources import Given

from .conftest import PAPER, ROOT

SMALLEST_WORDS_PT = 6.5


@pytest.fixture(scope="module")
def pdf(real) -> bytes:
    return typeset.render(*real)


@pytest.mark.parametrize(
    ("text", "line", "found"),
    [
        ("See @nothing.", 4, "label `<nothing>` does not exist"),
        ("#nope()", 4, "unknown variable: nope"),
        ("#num()", 4, "missing argument"),
        ("*open", 4, "unclosed delimiter"),
        ('#bibliography("absent.bib")', 4, "file not found"),
    ],
)
def test_what_does_not_compile_names_file_and_line(small, text, line, found):
    with pytest.raises(InputError, match=rf"paper\.typ: line {line}: found .*{found}") as error:
        small(f"= One\n{text}")
    assert "/tmp" not in str(error.value).replace(str(small.source), "")


def test_a_picture_without_a_description_is_refused(small):
    small.figures = {"drawn": {"label": "Measured", "alt": None, "width_px": 100}}
    with pytest.raises(InputError, match="missing alt text"):
        small('= One\n#chart("drawn")[Caption.]')


def test_nothing_is_half_written(tmp_path):
    source, paper = tmp_path / "paper.typ", tmp_path / "made" / "paper.pdf"
    source.write_text((PAPER / "paper.typ").read_text(encoding="utf-8") + '\n#num("no.such")\n', encoding="utf-8")
    published = ROOT / "data/published"
    given = Given(
        ROOT / "data/numbers.json", ROOT / "data/claims.json", (), published / "findings.yaml", published / "retractions.yaml",
        published / "survival.yaml",
    )  # fmt: skip
    manuscript = typeset.Manuscript(source, PAPER / "style.typ", PAPER / "references.bib", sorted((ROOT / "figures").glob("*.svg")))
    # Without what the build writes beside each picture no figure is known, and the first that is placed is missed.
    with pytest.raises(InputError, match=r"paper\.typ.*found no such figure"):
        typeset.write(manuscript, given, paper, pages=(), allowed=sorted(published.glob("allowed_*.yaml")), version="1.0")
    assert not paper.parent.exists()


def test_the_same_bytes_twice_and_no_path_no_date(small):
    text = '= One\n#num("measured.copy")\n#tabular(1, [a], num("analytic.block"), caption: [c], alt: "t")'
    first = small(text)
    assert first == small(text)
    assert b"/CreationDate" not in first
    assert str(small.source.parent).encode() not in first


def test_fonts_come_from_pinned_packages(small):
    fonts = typst.Fonts(include_system_fonts=False, font_paths=[typeset.font_source_sans_pro.font_directory])
    pinned = set(fonts.families())
    assert {"Libertinus Serif", "Source Sans Pro", "DejaVu Sans Mono"} <= pinned
    # One that this machine has, if it has any: a name that no machine has would be refused in any case.
    of_the_machine = sorted(set(typst.Fonts(include_system_fonts=True).families()) - pinned) or ["Comic Sans MS"]
    with pytest.raises(InputError, match="unknown font family"):
        small(f'= One\n#text(font: "{of_the_machine[0]}")[words]')


def test_the_paper_has_its_length(real, pdf):
    manuscript, _, _, printable, _ = real
    with typeset._compiler(manuscript, printable) as compiler:
        (pages,) = typeset.queried(compiler, "pages")
    assert 10 <= pages <= 14


def test_the_paper_is_tagged_and_embeds_what_it_needs(pdf):
    assert b"pdfuaid" in pdf
    assert b"/MarkInfo" in pdf
    assert b"/Lang" in pdf


def test_the_paper_is_the_same_in_another_folder_time_zone_locale_and_hash_seed(tmp_path):
    program = (
        "import hashlib, runpy, sys; from kvtier.publish.paper import typeset;"
        "given = runpy.run_path(sys.argv[1])['whole_paper']();"
        "print(hashlib.sha256(typeset.render(*given)).hexdigest())"
    )
    digests = set()
    for seed, zone, language in (("1", "UTC", "C.UTF-8"), ("77", "Asia/Kathmandu", "tr_TR.UTF-8")):
        folder = tmp_path / seed
        folder.mkdir()
        found = {**os.environ, "PYTHONHASHSEED": seed, "TZ": zone, "LANG": language, "TMPDIR": str(folder)}
        made = subprocess.run(
            [sys.executable, "-c", program, str(Path(__file__).parent / "conftest.py")],
            env=found,
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(made.stdout.strip())
    assert len(digests) == 1


def test_all_that_is_listed_is_cited(real):
    listed = set(re.findall(r"(?m)^@\w+\{([\w-]+),", (PAPER / "references.bib").read_text(encoding="utf-8")))
    cited = set(re.findall(r"@([a-z][\w-]*)", (PAPER / "paper.typ").read_text(encoding="utf-8")))
    assert listed <= cited
    assert not {name for name in cited - listed if not name.startswith(("sec-", "tab-", "fig-"))}


def test_all_figures_and_tables_are_spoken_of():
    text = (PAPER / "paper.typ").read_text(encoding="utf-8")
    assert {name for name in re.findall(r"<((?:fig|tab)-[\w-]+)>", text) if f"@{name}" not in text} == set()


def test_words_in_figures_are_legible_and_figures_fit_the_page(real):
    _, _, _, printable, _ = real
    text, style = ((PAPER / name).read_text(encoding="utf-8") for name in ("paper.typ", "style.typ"))
    scale = float(re.search(r"#let chart-scale = ([\d.]+)pt", style)[1])
    placed = re.findall(r'#chart\("(\w+)"\)', text)
    assert len(placed) >= 5
    for name in placed:
        picture = (ROOT / "figures" / f"{name}.svg").read_text(encoding="utf-8")
        sizes = [float(size) for size in re.findall(r'font-size="([\d.]+)px"', picture)]
        assert min(sizes) * scale >= SMALLEST_WORDS_PT, name
        # A4 less both outer margins.
        assert printable["figures"][name]["width_px"] * scale <= (21.0 - 2 * 1.8) / 2.54 * 72, name


def test_every_passage_with_results_of_a_simulation_has_the_caveat(real):
    """A check over the real text that the checks themselves are looking at something."""
    manuscript, ledger, sources, printable, allowed = real
    with typeset._compiler(manuscript, printable) as compiler:
        (items,) = typeset.queried(compiler, "transcript")
    found = transcript.check(manuscript.source, items, ledger, sources.claims, sources.retractions, allowed)
    quoted = [quote for passage in found for quote in passage.quoted]
    assert sum(quote["what"] == "num" for quote in quoted) > 200
    assert sum(quote["what"] == "condition" for quote in quoted) > 10
    assert {"caveat", "claim", "figure", "verdict", "withdrawn"} <= {quote["what"] for quote in quoted}
    without = [item for item in items if item.get("what") != "caveat"]
    with pytest.raises(InputError, match="without the standing caveat"):
        transcript.check(manuscript.source, without, ledger, sources.claims, sources.retractions, allowed)


def test_the_tracked_copy_is_a_whole_document():
    tracked = (PAPER / "paper.pdf").read_bytes()
    assert tracked.startswith(b"%PDF-")
    assert tracked.rstrip().endswith(b"%%EOF")


def test_each_pattern_of_the_papers_own_list_is_needed(real):
    manuscript, ledger, sources, printable, allowed = real
    with typeset._compiler(manuscript, printable) as compiler:
        (items,) = typeset.queried(compiler, "transcript")
    for pattern in read_yaml(ROOT / "data/published/allowed_in_paper.yaml"):
        less = {other: reason for other, reason in allowed.items() if other != pattern}
        with pytest.raises(InputError, match="found the bare number"):
            transcript.check(manuscript.source, items, ledger, sources.claims, sources.retractions, less)
