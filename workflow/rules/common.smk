"""Helpers of the rules: what code a rule depends on, and its settings."""

from kvtier.evidence.provenance import import_closure

BUILDS = {"results": "config/full.yaml", "results/quick": "config/quick.yaml"}
SETTINGS = {folder: load_config(path) for folder, path in BUILDS.items()}


def package_sources(*modules):
    """Source files that the modules import, as inputs: snakemake itself does not see them change."""
    return [str(path.relative_to(Path.cwd())) for path in import_closure(*modules)]


def setting(section, key):
    """A parameter taken from the configuration of the build that the wildcard {results} names."""
    return lambda wildcards: SETTINGS[wildcards.results][section][key]
