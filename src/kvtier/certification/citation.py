"""CITATION.cff and .zenodo.json: the artifact as it is cited, and as an archive takes it in."""

from __future__ import annotations

import json
from typing import Any

import yaml

from kvtier.certification.artifact import Artifact


def dump(content: dict[str, Any], note: str) -> str:
    """YAML in the order given, under a line with a note: which rule made it, and from what."""
    return f"# {note} Do not edit.\n" + yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120)


def cff(artifact: Artifact, version: str) -> str:
    """Citation File Format 1.2.0. An author is an entity: a name is not taken apart into given and family name.

    Parameters
    ----------
    artifact : Artifact
    version : str
        Of the package.

    Returns
    -------
    str
        YAML.
    """
    content = {
        "cff-version": "1.2.0",
        "message": "If you use this artifact, please cite it as below.",
        "type": "software",
        "title": artifact.title,
        "abstract": artifact.abstract,
        "authors": [{"name": author.name, **({"orcid": author.orcid} if author.orcid else {})} for author in artifact.authors],
        "version": version,
        "date-released": artifact.date,
        "license": artifact.license,
        "keywords": list(artifact.keywords),
    }
    return dump(content, "Made by rule write_citation from data/published/artifact.yaml.")


def zenodo(artifact: Artifact, version: str) -> str:
    """Metadata of a deposit, as Zenodo reads them from a repository's ``.zenodo.json``.

    Parameters
    ----------
    artifact : Artifact
    version : str
        Of the package.

    Returns
    -------
    str
        JSON.
    """
    content = {
        "upload_type": "software",
        "title": artifact.title,
        "description": artifact.abstract,
        "creators": [
            {"name": author.name, **({"orcid": author.orcid.rpartition("/")[2]} if author.orcid else {})} for author in artifact.authors
        ],
        "version": version,
        "publication_date": artifact.date,
        "license": artifact.license,
        "access_right": "open",
        "keywords": list(artifact.keywords),
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
