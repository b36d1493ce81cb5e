"""Copy what the build made over the published copy."""

from kvtier.evidence.published_copy import Published, publish
from kvtier.jobs import reporting

if __name__ == "__main__":
    with reporting(snakemake):
        files = zip(snakemake.params.published, snakemake.input.built, snakemake.params.made_by, strict=True)
        changed = publish([Published(*file) for file in files])
        print("\n".join(f"renewed: {path}" for path in changed) or "nothing to renew", flush=True)
