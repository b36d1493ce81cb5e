"""CITATION.cff and .zenodo.json, from the description of the artifact."""

import kvtier
from kvtier.certification import artifact, citation
from kvtier.files import write_atomically
from kvtier.jobs import reporting

if __name__ == "__main__":
    with reporting(snakemake):
        described = artifact.read(snakemake.input.artifact)
        write_atomically(snakemake.output.cff, citation.cff(described, kvtier.__version__))
        write_atomically(snakemake.output.zenodo, citation.zenodo(described, kvtier.__version__))
