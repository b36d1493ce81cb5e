"""codecheck.yml: which files a codechecker has to see made again, and by which rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvtier.certification.artifact import Artifact
from kvtier.certification.citation import dump


@dataclass(frozen=True)
class Made:
    """A published file and its rule.

    Parameters
    ----------
    path : str
        Tracked file.
    rule : str
        The rule that makes it.
    says : str
        First line of the rule's docstring.
    """

    path: str
    rule: str
    says: str

    @property
    def comment(self) -> str:
        """What the rule makes, and its name."""
        return f"Rule {self.rule}: {self.says}"


def codecheck(artifact: Artifact, files: Sequence[Made]) -> str:
    """A configuration of a codecheck before the check: `codechecker`, `report` and `certificate` are for the codechecker to add.

    Parameters
    ----------
    artifact : Artifact
    files : sequence of Made
        The manifest, in the order of the DAG.

    Returns
    -------
    str
        YAML after https://codecheck.org.uk/spec/config/1.0/.
    """
    content = {
        "version": "https://codecheck.org.uk/spec/config/1.0/",
        "paper": {
            "title": artifact.title,
            "authors": [
                {"name": author.name, **({"ORCID": author.orcid.rpartition("/")[2]} if author.orcid else {})} for author in artifact.authors
            ],
        },
        "manifest": [{"file": file.path, "comment": file.comment} for file in files],
    }
    note = (
        "Made by rule write_codecheck: the manifest is the published copy, which `make` makes and compares. "
        "No codechecker has checked it yet."
    )
    return dump(content, note)
