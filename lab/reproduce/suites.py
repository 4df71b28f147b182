"""The experiments of the papers as suites: their models, prompts, and places in the papers."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from qabias.benchmarks import load_benchmark
from qabias.errors import QabiasError
from qabias.runs.arguments import DEFAULT_PARSER, RunArguments
from qabias.scorers.registry import BASELINE, BASELINE_PREFIX, scorer_of
from qabias.support.suggest import closest, unknown

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Experiment:
    """One way of querying models."""

    name: str
    scorers: Sequence[str]
    formats: Sequence[str]
    claim: str
    benchmark: str
    config: str
    parser: str = DEFAULT_PARSER
    options: Mapping[str, str] = field(default_factory=dict)
    rules: Mapping[str, str] = field(default_factory=dict)
    mean: str = ""
    differs: str = ""


@dataclass(frozen=True)
class SuiteModel:
    """A model of a suite's table, or one that a user names."""

    name: str
    model: str
    scorer: str
    claim: str = ""
    in_paper: bool = True
    made_by: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    experiments: Sequence[str] = ()


@dataclass(frozen=True)
class Suite:
    """The experiment of a paper."""

    name: str
    title: str
    source: str
    experiments: Sequence[Experiment]
    models: Sequence[SuiteModel]


@dataclass(frozen=True)
class SuiteRun:
    """One run of a suite."""

    name: str
    arguments: RunArguments
    model: SuiteModel
    experiment: Experiment


def suite_names() -> tuple[str, ...]:
    """Names of all suites: the benchmarks with a file in this folder."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.yaml")))


def load_suite(name: str) -> Suite:
    """The suite of that name."""
    if name not in suite_names():
        raise unknown("paper", name, suite_names(), see="python -m lab.reproduce")
    path = _FOLDER / f"{name}.yaml"
    content: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    defaults = {"benchmark": content["benchmark"], "config": content["config"]}
    return Suite(
        name=name,
        title=content["title"],
        source=content["source"],
        experiments=[Experiment(**{**defaults, **entry}) for entry in content["experiments"]],
        models=[SuiteModel(**entry) for entry in content["models"]],
    )


def choose_models(suite: Suite, names: Sequence[str]) -> list[SuiteModel]:
    """Choose the paper's models, or named ones: by the suite's table, or as in `qabias run --model`."""
    if not names:
        return [model for model in suite.models if model.in_paper]
    table = {model.name: model for model in suite.models}
    # Ids of the table mean its entries, with their options.
    by_id = {model.model: model for model in suite.models}
    return [table.get(name) or by_id.get(name) or _own_model(suite, name) for name in dict.fromkeys(names)]


def _own_model(suite: Suite, name: str) -> SuiteModel:
    if not name.startswith(BASELINE_PREFIX) and "/" not in name and not Path(name).exists():
        named = [model.name for model in suite.models]
        if closest(name, named):
            raise unknown(f"model of {suite.name}", name, named, "--models", "python -m lab.reproduce")
    scorer = scorer_of(None, name)
    known = sorted({scorer for experiment in suite.experiments for scorer in experiment.scorers})
    if scorer not in known:
        raise QabiasError(f"{suite.name} does not include {name!r} ({scorer}).", f"Use a {' or '.join(known)} model.")
    return SuiteModel(name=_folder_name(name), model=name, scorer=scorer, claim="named by --models", in_paper=False)


def _folder_name(model: str) -> str:
    """Name of a model's folder: a Hub id keeps its owner, a path only its last part."""
    shown = Path(model).resolve().name if Path(model).is_dir() else model
    return re.sub(r"[^A-Za-z0-9.]+", "-", shown).strip("-.")


def expand(
    suite: Suite, models: Sequence[SuiteModel], *, source: str | None = None, config: str | None = None, **changes: Any
) -> list[SuiteRun]:
    """List all runs of some models, model by model."""
    runs = [
        SuiteRun(_run_name(suite, model, experiment, prompt_format), arguments, model, experiment)
        for model in models
        for experiment in _experiments(suite, model)
        for prompt_format in experiment.formats
        for arguments in (
            RunArguments(
                benchmark=experiment.benchmark,
                model=model.model,
                config=config or experiment.config,
                source=source or suite.source,
                format=prompt_format,
                # A baseline has no model, and no scorer is asked for it.
                backend=None if model.scorer == BASELINE else model.scorer,
                parser=experiment.parser,
                options=_options(suite, experiment, model, source),
                rules=experiment.rules,
                **(changes | {"dtype": "auto"} if model.scorer == BASELINE else changes),
            ),
        )
    ]
    names = [run.name for run in runs]
    for name in names:
        if names.count(name) > 1:
            raise QabiasError(f"{suite.name}: two models would write to {name}.", "Use another --output for one.")
    return runs


def _options(suite: Suite, experiment: Experiment, model: SuiteModel, source: str | None) -> dict[str, str]:
    options = {**experiment.options, **model.options}
    if source in (None, suite.source):
        return options
    own = load_benchmark(experiment.benchmark).options
    return {name: value for name, value in options.items() if name not in own}


def _experiments(suite: Suite, model: SuiteModel) -> list[Experiment]:
    return [
        experiment
        for experiment in suite.experiments
        if model.scorer in experiment.scorers and (not model.experiments or experiment.name in model.experiments)
    ]


def _run_name(suite: Suite, model: SuiteModel, experiment: Experiment, prompt_format: str) -> str:
    """`<model>-<format>`; a further experiment with this format adds its name between the two."""
    first = next(other for other in _experiments(suite, model) if prompt_format in other.formats)
    middle = () if experiment is first else (experiment.name,)
    return "-".join((model.name, *middle, prompt_format))
