"""The picture of the code: imports between packages by layer, and what the stages of the build read of each other."""

from kvtier.files import read_json
from kvtier.jobs import reporting
from kvtier.publish import architecture

if __name__ == "__main__":
    with reporting(snakemake):
        code = architecture.packages(snakemake.input.contract, "src")
        build = architecture.stages(snakemake.input.order, read_json(snakemake.input.rules)["rules"])
        architecture.write(snakemake.output.wide, snakemake.output.narrow, code, build)
