"""codecheck.yml, from the list of what is published."""

from kvtier.certification import artifact, manifest
from kvtier.files import write_atomically
from kvtier.jobs import reporting

if __name__ == "__main__":
    with reporting(snakemake):
        params = snakemake.params
        files = [manifest.Made(*file) for file in zip(params.files, params.made_by, params.says, strict=True)]
        write_atomically(snakemake.output.manifest, manifest.codecheck(artifact.read(snakemake.input.artifact), files))
