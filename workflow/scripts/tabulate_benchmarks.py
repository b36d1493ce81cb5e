"""Retained benchmark rows summed up: this engine beside a peer, and how the cost of a replay grows."""

from kvtier.evidence.numbers import write
from kvtier.jobs import reporting
from kvtier.measure import bench

if __name__ == "__main__":
    with reporting(snakemake):
        given = snakemake.input
        comparisons = bench.read_comparisons(given.peers)
        bench.THROUGHPUT.write(bench.throughput(comparisons), snakemake.output.throughput)
        of_peers = bench.of_peers(comparisons, bench.read_machine(given.peers_machine))
        of_growth = bench.of_growth(given.growth, bench.read_machine(given.growth_machine))
        write(snakemake.output.numbers, [*of_peers, *of_growth], snakemake)
