"""ro-crate-metadata.json, from the rules behind the published copy and the bytes of their files."""

import snakemake as engine

import kvtier
from kvtier.certification import artifact, crate
from kvtier.certification.steps import Step
from kvtier.files import write_atomically
from kvtier.jobs import reporting


def step(fields: dict) -> Step:
    return Step(**{**fields, "reads": tuple(fields["reads"]), "makes": tuple(fields["makes"])})


if __name__ == "__main__":
    with reporting(snakemake):
        given, params = snakemake.input, snakemake.params
        content = crate.metadata(
            artifact.read(given.artifact),
            kvtier.__version__,
            engine.__version__,
            [step(fields) for fields in params.steps],
            params.published,
            given.settings,
            [path for path in given.workflow if path != "Snakefile"],
        )
        write_atomically(snakemake.output.crate, content)
