"""The map of rules: files by rule, and the tracked copies of what is built."""

import json

from kvtier.files import write_atomically
from kvtier.jobs import reporting

if __name__ == "__main__":
    with reporting(snakemake):
        content = {"rules": snakemake.params.rules, "published": snakemake.params.published}
        write_atomically(snakemake.output.rules, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
