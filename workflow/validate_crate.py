"""Hold the research object crate of the checkout against its profile, by the profile's own validator, without network.

Usage: ``.venv-certify/bin/python workflow/validate_crate.py [FOLDER]``, in the environment that ``make certify`` makes. What the profile
requires must hold. What it recommends must hold too, but for what LEFT_OUT names with its reason.

The validator resolves one address, the JSON-LD context of RO-Crate 1.1. A copy of it, byte for byte, comes with the package rocrate up to
0.15, and is laid into the validator's cache of answers.
"""

import importlib.util
import io
import json
import sys
import tempfile
from pathlib import Path

from requests.adapters import HTTPAdapter
from requests_cache import CachedSession
from rocrate_validator import models, services
from urllib3 import HTTPResponse

CONTEXT = "https://w3id.org/ro/crate/1.1/context"
PROFILE = "provenance-run-crate"
LEFT_OUT = {
    "The Action SHOULD have an endTime in ISO 8601 format": "no clock is in the crate, so that two builds make the same bytes",
    "The Application SHOULD have a url": "scripts are at no public address of their own",
    "The organization SHOULD have a URL.": "nor are the authors",
}
TERMS = ("http://schema.org/", "https://bioschemas.org/")
"""What is said of these is said of the profile's own vocabulary, and of nothing in the crate."""


def carried_context() -> bytes:
    """The context, from the package that carries it; ValueError if it carries another."""
    found = importlib.util.find_spec("rocrate")
    content = Path(found.submodule_search_locations[0], "data/ro-crate.jsonld").read_bytes()
    if json.loads(content)["@id"] != CONTEXT:
        raise ValueError(f"rocrate carries {json.loads(content)['@id']}, expected {CONTEXT}")
    return content


class Carried(HTTPAdapter):
    """Answers any request with one content, in place of the network."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        super().__init__()

    def send(self, request, **_):
        """The answer."""
        headers = {"Content-Type": "application/ld+json"}
        raw = HTTPResponse(io.BytesIO(self.content), headers, 200, preload_content=False, request_url=request.url)
        return self.build_response(request, raw)


def lay_in(cache: str, url: str, content: bytes) -> None:
    """Store an answer in the validator's cache as if it had been fetched."""
    with CachedSession(cache_name=cache, backend="sqlite", expire_after=-1) as session:
        session.mount(url, Carried(content))
        session.get(url)


def issues(folder: str) -> list[tuple[str, str, str]]:
    """Severity, what is at fault, message: of everything that the profile, and those it extends, require or recommend."""
    with tempfile.TemporaryDirectory() as scratch:
        cache = str(Path(scratch, "answers"))
        lay_in(cache, CONTEXT, carried_context())
        settings = services.ValidationSettings(
            rocrate_uri=folder,
            profile_identifier=PROFILE,
            requirement_severity=models.Severity.RECOMMENDED,
            cache_path=Path(cache),
            offline=True,
        )
        result = services.validate(settings)
        found = {(issue.severity.name, str(issue.violatingEntity or ""), issue.message) for issue in result.get_issues()}
        return sorted(issue for issue in found if not issue[1].startswith(TERMS))


def main() -> int:
    """Print what is found; 1 if anything required, or recommended and not left out, is not there."""
    # The validator takes a relative folder for a part of its own messages.
    folder = str(Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve())
    found = issues(folder)
    wrong = [issue for issue in found if issue[0] != "RECOMMENDED" or issue[2] not in LEFT_OUT]
    for severity, entity, message in wrong:
        print(f"{severity}: {entity}: {message}")
    for message, reason in LEFT_OUT.items():
        print(f"left out at {sum(issue[2] == message for issue in found)} places: {message}: {reason}")
    print(f"{folder}: {'does not conform' if wrong else 'conforms'} to {PROFILE}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
