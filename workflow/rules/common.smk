"""Helpers of the rules: the code a rule runs, and its settings."""

import sys
from pathlib import Path

from snakemake.io import strip_wildcard_constraints

from kvtier.config import load
from kvtier.errors import InputError
from kvtier.evidence.provenance import import_closure, imported_modules
from kvtier.workload import retrieve

try:
    SETTINGS = {
        folder: load(path, "workflow/schemas/config.schema.json")
        for folder, path in {
            "results": "config/full.yaml",
            "results/quick": "config/quick.yaml",
        }.items()
    }
except InputError as error:
    sys.exit("error: {}".format(error))


wildcard_constraints:
    results="results|results/quick",


def code_of(script):
    """A rule's script and every module of the package that it imports, as inputs: snakemake itself does not see modules change."""
    path = Path("workflow/scripts", f"{script}.py")
    modules = import_closure(*imported_modules(path))
    return [str(path), *(str(module.relative_to(Path.cwd())) for module in modules)]


def setting(section, key):
    """A parameter from the configuration of the build that the wildcard {results} names."""
    return lambda wildcards: SETTINGS[wildcards.results][section][key]


def shards_of(sweep):
    """Tables of the shards of a sweep, the first first; none where the sweep is made in one piece, as it is by default."""

    def paths(wildcards):
        count = SETTINGS[wildcards.results]["sweeps"]["shards"]
        if count == 1:
            return []
        return expand(
            rules.replay_shard.output.runs,
            results=wildcards.results,
            sweep=sweep,
            shard=range(1, count + 1),
            shards=count,
        )

    return paths


def kept_runs():
    """Files of the runs of the measurement kit under data/measured: a folder is one if it has a platform.json. The GB10 set has a platform.yaml."""
    files = []
    for folder in sorted(Path("data/measured").iterdir()):
        # A folder whose name begins with a dot was left by a move that was cut short.
        if (
            not folder.is_dir()
            or folder.name.startswith(".")
            or (folder / "platform.yaml").is_file()
        ):
            continue
        if not (folder / "platform.json").is_file():
            sys.exit(
                "error: {}: platform: found no such file, expected platform.json, as `kvtier measure keep` leaves it".format(
                    folder
                )
            )
        files += [
            str(path)
            for path in sorted(folder.iterdir())
            if path.name == "platform.json" or path.suffix == ".csv"
        ]
    return files


def figure_files(name):
    """What draws a figure makes four files, by the names that :func:`kvtier.publish.render.write` has for them."""
    ends = {
        "picture": "svg",
        "specification": "vl.json",
        "data": "csv",
        "page": "page.json",
    }
    files = {
        form: "{{results}}/figures/{}.{}".format(name, end)
        for form, end in ends.items()
    }
    return {**files, "picture": reported(files["picture"])}


def reported(path):
    """A result for snakemake's own report: its caption is workflow/report/<category>/<name>.rst, and there has to be one."""
    name = Path(path).name.partition(".")[0]
    captions = sorted(Path("workflow/report").glob("*/{}.rst".format(name)))
    if len(captions) != 1:
        sys.exit(
            "error: workflow/report: caption of {}: found {} files, expected one {}.rst in the folder of its category".format(
                path, len(captions), name
            )
        )
    return report(
        path,
        caption="../../{}".format(captions[0].as_posix()),
        category=captions[0].parent.name.capitalize(),
    )


def settings_of_sweep(wildcards):
    """By name, what the rule of a sweep has for parameters."""
    made = getattr(rules, wildcards.sweep)
    return {name: value(wildcards) for name, value in made.params.items()}


def from_top(path):
    """A path as seen from the top of the checkout, where snakemake runs."""
    return str(Path(path).resolve().relative_to(Path.cwd().resolve()))


def map_of_rules(_):
    """By name: where a rule of the full build is defined, its script, the files it reads and makes, the names of its settings."""

    def filled(items):
        # Without the shards of a sweep, which are no stage of their own: what they read, the sweep reads.
        return sorted(
            strip_wildcard_constraints(str(item)).replace("{results}", "results")
            for item in items
            if not callable(item)
        )

    return {
        made.name: {
            "file": from_top(made.snakefile),
            "script": from_top(Path(made.snakefile).parent / made.script),
            "inputs": filled(made.input),
            "outputs": filled(made.output),
            "settings": sorted(
                name for name, value in made.params.items() if callable(value)
            ),
        }
        for made in workflow.rules
        if made.script
        and made.output
        and made.name not in {"map_rules", "replay_shard"}
    }


try:
    TRACE_SOURCES = {
        source.file: source
        for source in retrieve.read_sources("data/inputs/traces.yaml").values()
    }
    TRACE_FOLDER = retrieve.folder(SETTINGS["results"]["traces"]["folder"])
except InputError as error:
    sys.exit("error: {}".format(error))

TRACES_HAD, TRACES_SKIPPED = retrieve.available(
    TRACE_SOURCES.values(),
    TRACE_FOLDER,
    SETTINGS["results"]["traces"]["download"],
)


def found_trace(wildcards):
    """The file of a trace in the folder, if it is there; else nothing, and it is fetched."""
    found = retrieve.find(TRACE_SOURCES[wildcards.file], TRACE_FOLDER)
    return [str(found)] if found else []


def trace_files(*formats):
    """Files of the traces that can be had, of some formats."""
    return [
        "results/traces/{}".format(source.file)
        for source in TRACES_HAD
        if source.format in formats
    ]
