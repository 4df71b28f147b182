"""The pushed files of a dataset folder, a metric folder and a run."""

import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from huggingface_hub import DatasetCard, SpaceCard

from qabias import share
from qabias.benchmarks import Benchmark, load_benchmark, loadable_benchmarks, locate
from qabias.benchmarks.registry import is_folder
from qabias.building import sources
from qabias.building.origin import BUNDLED, check_passing_on
from qabias.errors import QabiasError, arg
from qabias.hub.push import Push, check_repo_id
from qabias.hub.results import public_signature, result_files
from qabias.runs.opened import Run
from qabias.support.suggest import unknown
from qabias.support.version import __version__

# Never code: `load_dataset` needs none, and refuses a repository with a file of its name.
_DATASET_FILES = ("README.md", "TEMPLATES.md", "data/*/*.parquet", "templates/**/*.yaml", "vocabulary/*.csv")
_OWNED = ("data", "templates", "vocabulary")


def dataset_push(
    benchmark: str,
    repo_id: str,
    scratch: Path,
    *,
    source: str = "bundled",
    seed: int = 0,
    fixes: bool = False,
    as_benchmark: bool = False,
) -> Push:
    """The push of a dataset: the bundled folder unchanged, or one built from the authors' files."""
    check_repo_id(repo_id)
    chosen = load_pushable(benchmark)
    if chosen.card is not None:
        check_passing_on(chosen.name, chosen.card.licence_id)
    origin = chosen.origin(source, seed, fixes)
    is_bundled = source == BUNDLED
    if is_bundled and seed != 0:
        raise QabiasError(f"{arg('seed')} does not apply: the bundled examples are fixed", f"remove {arg('seed')}")
    folder = locate.dataset_folder(benchmark) if is_bundled else scratch
    if not is_bundled:
        chosen.write_folder(folder, "all", origin)
    files: dict[str, bytes | Path] = {
        path.relative_to(folder).as_posix(): path for pattern in _DATASET_FILES for path in sorted(folder.glob(pattern))
    }
    card = _card(folder, f'"./{chosen.name}_dataset"', repo_id)
    _check_data_files(card, files)
    if not is_bundled:
        check_attribution(card, benchmark)
    files["README.md"] = card.encode()
    if as_benchmark:
        if chosen.facts.hub is None or chosen.facts.hub.accuracy is None:
            problem = f"{arg('as_benchmark')}: {benchmark} has no eval.yaml, the task of a benchmark."
            raise QabiasError(problem, f"Remove {arg('as_benchmark')}.")
        files["eval.yaml"] = locate.dataset_folder(benchmark) / "eval.yaml"
    version = f"{chosen.name} {origin.version}, qabias {__version__}"
    return Push(repo_id, "dataset", f"Dataset {chosen.name} by qabias", version, files, owned=_OWNED)


def metric_push(benchmark: str, repo_id: str, dataset_id: str | None = None) -> Push:
    """The push of a metric, a Space on the Hub."""
    for name in (repo_id, dataset_id or repo_id):
        check_repo_id(name)
    load_dataset_owner(benchmark)
    folder = locate.metric_folder(benchmark)
    files: dict[str, bytes | Path] = {path.name: path for path in sorted(folder.glob("*.py"))}
    module = f"{repo_id.rpartition('/')[2]}.py"
    if module != f"{benchmark}.py" and (module in files or "." in module.removesuffix(".py")):
        conflict = "is another of its modules" if module in files else "cannot be imported"
        problem = f"{repo_id}: evaluate would load the metric from {module}, which {conflict}"
        raise QabiasError(problem, "choose another name")
    files[module] = folder / f"{benchmark}.py"
    files.pop("__init__.py", None)
    files |= {name: folder / name for name in ("requirements.txt", "page.yaml")}
    card = _card(folder, f'"./metrics/{benchmark}"', repo_id)
    card = card.replace(f'"./{benchmark}_dataset"', json.dumps(dataset_id or repo_id))
    files["README.md"] = card.encode()
    sdk = SpaceCard(card).data.get("sdk")
    return Push(repo_id, "space", f"Metric {benchmark} by qabias", f"qabias {__version__}", files, sdk=sdk)


def results_push(run: Path, model_id: str, dataset_id: str, **extra: Any) -> Push:
    """The push of a run's scores to the measured model's repository; `extra` as for `result_files`."""
    files = dict(result_files(run, model_id, dataset_id, **extra))
    scored = Run.scored(run)
    title = f"Results on {scored.benchmark.name} by qabias"
    return Push(model_id, "model", title, public_signature(scored, model_id), files)


def check_attribution(card: str, benchmark: str) -> None:
    """Check that a card of published texts names their license, authors and origin, as the licenses require."""
    chosen = load_pushable(benchmark)
    if chosen.card is not None:
        authors, licence = chosen.card.authors, chosen.card.licence_id
        repository = chosen.card.repository
    else:
        assert chosen.facts.hub is not None
        authors = chosen.facts.hub.authors
        repository = import_module(f"{share.__name__}.{benchmark}_dataset.official").REPOSITORY
        licence = sources.licence(repository)
    parsed = DatasetCard(card)
    needed = {
        f"license: {licence.lower()} in the head": parsed.data.get("license") == licence.lower(),
        f"the licence {licence}": licence.lower() in parsed.text.lower(),
        f"the authors {authors}": authors in parsed.text,
        f"the commit of {repository}": not repository or sources.commit(repository)[:7] in parsed.text,
    }
    missing = [name for name, is_there in needed.items() if not is_there]
    if missing:
        problem = f"{benchmark}: the card of the authors' texts lacks {' and '.join(missing)}"
        raise QabiasError(problem, "reinstall qabias, or correct card_sources.yaml")


def _card(folder: Path, local_name: str, repo_id: str) -> str:
    """The card of a folder, with the repository's name in its examples."""
    return (folder / "README.md").read_text(encoding="utf-8").replace(local_name, json.dumps(repo_id))


def _check_data_files(card: str, files: Mapping[str, object]) -> None:
    """The card must name exactly the pushed data files."""
    named = {
        path.replace("test-*", "test-00000-of-00001")
        for config in DatasetCard(card).data["configs"]
        for entry in config["data_files"]
        for path in ([entry["path"]] if isinstance(entry["path"], str) else entry["path"])
    }
    pushed = {path for path in files if path.endswith(".parquet")}
    if named != pushed:
        raise QabiasError(f"card and data differ in {', '.join(sorted(named ^ pushed))}", "rebuild the dataset folder")


def load_dataset_owner(name: str) -> Benchmark:
    """The benchmark with its own dataset, card and metric."""
    known = loadable_benchmarks()
    owners = [other for other, benchmark in known.items() if benchmark.facts.hub is not None]
    if name in owners:
        return known[name]
    if name in known:
        dataset = known[name].facts.dataset
        why = f"is a part of the dataset {dataset}" if dataset in owners else "has no dataset folder"
        raise QabiasError(f"{name} {why}", f"choose one of {', '.join(owners)}")
    raise unknown("name", name, owners)


def load_pushable(name: str) -> Benchmark:
    """The benchmark with a pushable dataset: its own, a published one, or a folder of templates."""
    if is_folder(name):
        return load_benchmark(name)
    known = loadable_benchmarks()
    if name in known and known[name].card is not None:
        return known[name]
    return load_dataset_owner(name)
