"""A research object crate of the build: which rule read and made which files, with digests, after the profile Provenance Run Crate 0.5.

The checkout is the crate: ``ro-crate-metadata.json`` stands at its top and names files where they are tracked. What a rule hands to the
next and nobody tracks is described by name and digest, and is no part of the crate. No clock is in it: two builds make the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from rocrate.model.contextentity import ContextEntity
from rocrate.model.data_entity import DataEntity
from rocrate.model.softwareapplication import SoftwareApplication
from rocrate.rocrate import ROCrate

from kvtier.certification.artifact import Artifact
from kvtier.certification.steps import Step
from kvtier.errors import InputError
from kvtier.files import sha256

WORKFLOW_CRATE = "https://w3id.org/workflowhub/workflow-ro-crate/1.0"
PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": "Process Run Crate",
    "https://w3id.org/ro/wfrun/workflow/0.5": "Workflow Run Crate",
    "https://w3id.org/ro/wfrun/provenance/0.5": "Provenance Run Crate",
    WORKFLOW_CRATE: "Workflow RO-Crate",
}
SPECIFICATION = "1.1"
"""Version of RO-Crate that these profiles extend."""
TERMS = {"sha256": "https://w3id.org/ro/terms/workflow-run#sha256"}
WORKFLOW_PROFILE = "https://bioschemas.org/profiles/ComputationalWorkflow/1.0-RELEASE"
PARAMETER_PROFILE = "https://bioschemas.org/profiles/FormalParameter/1.0-RELEASE"
SNAKEMAKE = "https://snakemake.github.io"
FORMATS = {
    ".cff": "application/yaml",
    ".csv": "text/csv",
    ".html": "text/html",
    ".json": "application/json",
    ".md": "text/markdown",
    ".pdf": "application/pdf",
    ".py": "text/x-python",
    ".svg": "image/svg+xml",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}
"""Media type by suffix; named here, for the system's own table differs from machine to machine."""


def _compact(value: Any) -> Any:
    """A list of one as that one, as RO-Crate writes it."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


class _Graph:
    """The entities of a crate while they are put together."""

    def __init__(self, artifact: Artifact, version: str, published: Mapping[str, str]) -> None:
        self.crate = ROCrate(version=SPECIFICATION)
        self.crate.metadata.extra_terms.update(TERMS)
        self.artifact, self.version, self.published = artifact, version, published
        self.built = {copy: built for built, copy in published.items()}

    def thing(self, entity_id: str, kind: str, **properties: Any) -> ContextEntity:
        properties = {name: _compact(value) for name, value in properties.items()}
        return self.crate.add(ContextEntity(self.crate, entity_id, properties={"@type": kind, **properties}))

    def action(self, entity_id: str, kind: str, **properties: Any) -> ContextEntity:
        made = self.thing(entity_id, kind, agent=self.authors(), **properties)
        self.crate.root_dataset.append_to("mentions", made)
        return made

    def authors(self) -> list[ContextEntity]:
        found = []
        for position, author in enumerate(self.artifact.authors, start=1):
            identifier = author.orcid or f"#author-{position}"
            known = self.crate.dereference(identifier)
            found.append(known or self.thing(identifier, "Person" if author.orcid else "Organization", name=author.name))
        return found

    def file(self, path: str, *, digest: bool, kind: Sequence[str] = (), **properties: Any) -> DataEntity:
        """A tracked file. Code has no digest: a comment in it must not move the crate."""
        identifier = quote(path)
        known = self.crate.dereference(identifier)
        if known:
            return known
        about = {"name": path, "encodingFormat": FORMATS.get(PurePosixPath(path).suffix, "text/plain"), **properties}
        if digest:
            # A published file is summed where it is built; any other is where it is named.
            about["sha256"] = sha256(self.built.get(path, path))
        return self.crate.add(DataEntity(self.crate, identifier, properties={"@type": ["File", *kind] if kind else "File", **about}))

    def data(self, path: str) -> DataEntity | ContextEntity:
        """What a rule reads or makes: a tracked file, or one that only a build has."""
        if path in self.published:
            return self.file(self.published[path], digest=True)
        if not path.startswith("results/"):
            return self.file(path, digest=True)
        identifier = f"#{quote(path)}"
        known = self.crate.dereference(identifier)
        said = "Handed from rule to rule within a build; not tracked."
        return known or self.thing(identifier, "CreativeWork", name=path, description=said, sha256=sha256(path))


def _described(graph: _Graph) -> None:
    artifact, root = graph.artifact, graph.crate.root_dataset
    graph.crate.name, graph.crate.description = artifact.title, artifact.abstract
    graph.crate.datePublished, graph.crate.keywords = artifact.date, list(artifact.keywords)
    root["author"] = root["publisher"] = _compact(graph.authors())
    root["version"] = graph.version
    root["license"] = graph.thing(artifact.license_url, "CreativeWork", name=artifact.license)
    root["conformsTo"] = [graph.thing(uri, "CreativeWork", name=name, version=uri.rpartition("/")[2]) for uri, name in PROFILES.items()]
    descriptor = graph.crate.metadata
    descriptor["conformsTo"] = [{"@id": descriptor.profile}, {"@id": WORKFLOW_CRATE}]


def _parameter(graph: _Graph, entity: DataEntity, role: str) -> ContextEntity:
    """What a workflow takes or gives at one place, and the file that stood there."""
    parameter = graph.thing(
        f"#{role}/{entity.id}",
        "FormalParameter",
        name=entity["name"],
        additionalType="File",
        workExample=entity,
        conformsTo={"@id": PARAMETER_PROFILE},
    )
    entity["exampleOfWork"] = parameter
    return parameter


def metadata(
    artifact: Artifact,
    version: str,
    engine_version: str,
    steps: Sequence[Step],
    published: Mapping[str, str],
    settings: str,
    code: Sequence[str],
) -> str:
    """``ro-crate-metadata.json``.

    Parameters
    ----------
    artifact : Artifact
    version, engine_version : str
        Of the package, and of snakemake.
    steps : sequence of Step
        In an order in which they can run.
    published : mapping of str to str
        Built file to its tracked copy.
    settings : str
        The configuration of the build.
    code : sequence of str
        Files of the workflow besides the Snakefile and the scripts.

    Returns
    -------
    str
        JSON-LD, keys sorted.

    Raises
    ------
    InputError
        If there is no step, or a file of one is missing.
    """
    if not steps:
        raise InputError("ro-crate-metadata.json", "steps", "none", "one or more")
    for step in steps:
        for path in (*step.reads, *step.makes):
            if not Path(path).is_file():
                raise InputError(path, f"rule {step.rule}", "nothing", "a file that the rule reads or makes")
    graph = _Graph(artifact, version, published)
    _described(graph)
    common = {"version": version, "license": {"@id": artifact.license_url}}
    language = graph.thing(
        "https://w3id.org/workflowhub/workflow-ro-crate#snakemake",
        "ComputerLanguage",
        name="Snakemake",
        identifier={"@id": SNAKEMAKE},
        url={"@id": SNAKEMAKE},
        version=engine_version,
    )
    workflow = graph.file(
        "Snakefile",
        digest=False,
        kind=["SoftwareSourceCode", "ComputationalWorkflow", "HowTo"],
        programmingLanguage=language,
        conformsTo={"@id": WORKFLOW_PROFILE},
        **common,
    )
    graph.crate.mainEntity = workflow
    graph.file("README.md", digest=False, about=graph.crate.root_dataset)
    parts = [graph.file(path, digest=False, kind=["SoftwareSourceCode"], programmingLanguage=language, **common) for path in code]

    made_here = {path for step in steps for path in step.makes}
    taken = list(dict.fromkeys([settings, *(path for step in steps for path in step.reads if path not in made_here)]))
    inputs = [graph.data(path) for path in taken]
    tools, how, controls = [], [], []
    for position, step in enumerate(steps, start=1):
        tool = graph.file(step.script, digest=False, kind=["SoftwareSourceCode"], **common)
        tools.append(tool)
        stage = graph.thing(
            f"#step/{step.rule}", "HowToStep", name=step.rule, description=step.says, position=str(position), workExample=tool
        )
        how.append(stage)
        ran = graph.action(
            f"#run/{step.rule}",
            "CreateAction",
            name=f"Run of rule {step.rule}",
            description=step.says,
            instrument=tool,
            object=[graph.data(path) for path in step.reads],
            result=[graph.data(path) for path in step.makes],
        )
        controls.append(
            graph.thing(f"#control/{step.rule}", "ControlAction", name=f"Start of rule {step.rule}", instrument=stage, object=ran)
        )
    outputs = [graph.data(path) for step in steps for path in step.makes if path in published]

    workflow["hasPart"] = _compact(list({tool.id: tool for tool in tools}.values()))
    workflow["isBasedOn"] = _compact(parts)
    workflow["step"] = _compact(how)
    workflow["input"] = _compact([_parameter(graph, entity, "input") for entity in inputs])
    workflow["output"] = _compact([_parameter(graph, entity, "output") for entity in outputs])
    build = graph.action(
        "#build",
        "CreateAction",
        name="Full build",
        description="`snakemake --cores all`: everything from stated inputs.",
        instrument=workflow,
        object=inputs,
        result=outputs,
    )
    engine = graph.crate.add(
        SoftwareApplication(
            graph.crate, SNAKEMAKE, properties={"name": "Snakemake", "url": {"@id": SNAKEMAKE}, "softwareVersion": engine_version}
        )
    )
    graph.action("#engine", "OrganizeAction", name="Snakemake, which ran the rules", instrument=engine, object=controls, result=build)
    return json.dumps(graph.crate.metadata.generate(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
