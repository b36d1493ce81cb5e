"""The font inside a page: it has every letter that the templates use, and the same bytes on any day."""

from __future__ import annotations

import base64
import io
import os
import re
import subprocess
import sys

from fontTools.ttLib import TTFont

from kvtier.publish.pages import fonts
from kvtier.publish.pages.page import TEMPLATES


def faces() -> list[bytes]:
    return [base64.b64decode(found) for found in re.findall(r"base64,([^)]+)\)", str(fonts.faces()))]


def test_every_letter_of_the_templates_is_in_both_upright_faces():
    written = set().union(*(path.read_text(encoding="utf-8") for path in TEMPLATES.rglob("*.j2"))) - set("\n◐")
    regular, _, semibold = faces()
    for face in (regular, semibold):
        assert written - {chr(code) for code in TTFont(io.BytesIO(face)).getBestCmap()} == set()


def test_bytes_repeat_under_another_seed_zone_and_clock():
    said = "import sys; from kvtier.publish.pages import fonts; sys.stdout.write(str(fonts.faces()))"
    # The package's own clock for what is built, some other day.
    other = {"PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo", "LC_ALL": "C", "SOURCE_DATE_EPOCH": "1000000000"}
    run = subprocess.run([sys.executable, "-c", said], env={**os.environ, **other}, capture_output=True, check=True)
    assert run.stdout.decode() == str(fonts.faces())
