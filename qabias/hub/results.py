"""The headline scores of a run for the measured model's repository."""

import hashlib
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from shlex import quote
from textwrap import indent
from typing import Any

import yaml
from huggingface_hub import EvalResultEntry, constants, eval_result_entries_to_yaml
from huggingface_hub.repocard import REGEX_YAML_BLOCK

from qabias.benchmarks.headline import scored_groups
from qabias.building.origin import BUNDLED
from qabias.errors import QabiasError, arg
from qabias.hub.push import check_repo_id
from qabias.runs.opened import Run
from qabias.runs.scored import answered_in_words, answered_share
from qabias.runs.signature import coverage_of, escaped, format_name, signature_fields
from qabias.scores.facts import Scores
from qabias.scores.score import NOT_DETECTABLE, Score, read_score
from qabias.support.files import MOST_BYTES, require_regular_file
from qabias.support.outputs import check_file, may_overwrite
from qabias.support.suggest import shortened

LONGEST_NAME = 120  # characters of a results file's name, without its ending; a system message can be longer
_BETWEEN = r"(?: *(?:#.*)?\n)*"  # blank lines and comments in a YAML text


def task_score(run: Run) -> Callable[[Scores], float | None] | None:
    """The score of the task in the `eval.yaml` of a run's dataset, or None if the run measures something else."""
    hub = run.benchmark.facts.hub
    return hub.accuracy if hub is not None and run.arguments.config == run.benchmark.configs[-1] else None


def headlines(run: Run) -> Iterator[tuple[str, Score, dict[str, Any], str]]:
    """The headline scores of a run with their config, details and note, including undefined ones.

    Sets with their own scores have a config each.
    """
    benchmark = run.benchmark
    for pointer, scores in scored_groups(benchmark, run.scores).items():
        config = pointer.rpartition("/")[2] or run.arguments.config
        if config not in benchmark.configs:
            raise QabiasError(f"{run.folder}: {config} is not a config on the Hub", "measure one config, or all")
        for measure in benchmark.facts.chosen(benchmark.facts.tasks):
            score = read_score(benchmark.facts, scores, measure)
            rows = [
                ("interval", "95% CI", [*score[1:3]] if score.possible is None and score.low is not None else None),
                ("range", "range with the missing answers", score.possible and list(score.possible)),
                ("mde", "MDE", NOT_DETECTABLE if score.size == NOT_DETECTABLE else score.mde),
                ("bound", "bound", score.bound),
                ("answered", "", answered_share(scores)),
                ("missing", "share of missing answers", score.missing),
            ]
            rows = [row for row in rows if row[2] is not None]
            notes = [f"{label} {_shown(detail)}" for _, label, detail in rows if label]
            details = {key: detail for key, _, detail in rows}
            yield config, score, details, "; ".join(filter(None, (*notes, answered_in_words(scores))))


def result_files(
    run_folder: Path, model_id: str, dataset: str, source_url: str | None = None, *, sample: bool = False
) -> dict[str, bytes]:
    """The file for `.eval_results/` of the model's repository: the value of the task, the bias scores in its notes."""
    run, dataset_id, revision = _read(run_folder, model_id, dataset, sample)
    task = task_score(run)
    if task is None:
        measured = f"{run.arguments.benchmark_name}, config {run.arguments.config}"
        problem = (
            f"{run_folder}: the Hub takes results of a whole benchmark with right answers only, not of {measured}."
        )
        where = f"{quote(str(run_folder))} --to {model_id} --dataset {dataset}{' --sample' * sample}"
        raise QabiasError(problem, f"For its model card: qabias push results {where} --write-to FOLDER --model-index")
    value = task(run.scores)
    if value is None:
        raise QabiasError(f"{run_folder}: its accuracy is undefined", "publish a run with defined scores")
    notes = (
        f"{score.measure.name} undefined ({score.reason})"
        if score.value is None
        else f"{score.measure.name} {_shown(score.value)}; {note}"
        for _, score, _, note in headlines(run)
    )
    entry = EvalResultEntry(
        dataset_id=dataset_id,
        task_id=run.benchmark.name,
        value=value,
        dataset_revision=revision,
        date=run.created,
        source_url=_url(source_url, dataset_id),
        source_name=f"qabias {signature_fields(run.signature)['qabias']}",
        notes="; ".join(filter(None, (public_signature(run, model_id), _texts(run), *notes))),
    )
    text = yaml.safe_dump(eval_result_entries_to_yaml([entry]), sort_keys=False, allow_unicode=True, width=1000)
    return {f".eval_results/{_file_name(run)}.yaml": text.encode()}


def check_replaceable(path: Path, content: bytes) -> None:
    """Refuse to replace a results file of another run."""
    [new] = _signatures(content)
    check_file(path, lambda _: True)
    if not path.exists() or may_overwrite():
        return
    old = _signatures(require_regular_file(path, MOST_BYTES).read_bytes())
    if old != {new}:
        other = " and ".join(sorted(old)) or "(unreadable)"
        raise QabiasError(
            f"{path}: holds results with the signature {other}, not {new}",
            f"choose another {arg('output')}, or add {arg('overwrite')}",
        )


def _signatures(content: bytes) -> set[str]:
    """The signatures in the notes of a results file, if it is one."""
    try:
        entries = yaml.safe_load(content)
        notes = [str(entry["notes"]) for entry in entries]
    except (yaml.YAMLError, UnicodeDecodeError, KeyError, TypeError):
        return set()
    # The last field of a signature is the version of qabias, with an optional note.
    parts = (note.rpartition("|") for note in notes)
    return {f"{head}{bar}{last.partition('; ')[0]}" for head, bar, last in parts}


def model_index(
    run_folder: Path, model_id: str, dataset: str, source_url: str | None = None, *, sample: bool = False
) -> list[dict[str, Any]]:
    """The same scores as results for the `model-index` of a model card, one for each config of the dataset."""
    run, dataset_id, revision = _read(run_folder, model_id, dataset, sample)
    fields = signature_fields(run.signature)
    results: dict[str, dict[str, Any]] = {}
    for config, score, details, _ in headlines(run):
        if score.value is None:
            continue
        name = " - ".join(filter(None, (run.benchmark.title, _texts(run))))
        texts = {"name": name, "type": dataset_id, "config": config, "split": "test"}
        texts |= {"revision": revision} if revision else {}
        new = {
            "task": {"type": run.benchmark.facts.task_type},
            "dataset": {**texts, "args": {"source": fields["source"]}},
            "metrics": [],
            "source": {"name": f"qabias {fields['qabias']}", "url": _url(source_url, dataset_id)},
        }
        args = {"signature": public_signature(run, model_id), **details}
        metric = {"type": score.measure.name, "value": score.value, "name": score.measure.name, "args": args}
        results.setdefault(config, new)["metrics"].append(metric)
    return list(results.values())


def update_card(card: str, results: Sequence[Mapping[str, Any]], model_id: str) -> str:
    """Put the results of a run into the `model-index` of a model card; only older ones of the same run change."""
    if "\r\n" in card:
        return update_card(card.replace("\r\n", "\n"), results, model_id).replace("\n", "\r\n")
    there = REGEX_YAML_BLOCK.match(card)
    opening, head, closing = there.group(1, 2, 3) if there else ("---\n", "", "\n---\n")
    head += "\n" * bool(head)
    try:
        data = yaml.safe_load(head) or {}
        name, models = model_id.rpartition("/")[2], data.get("model-index") or []
        [model] = [one for one in models if one["name"] == name or len(models) == 1] or [{"name": name}]
        old = model.get("results") or []
        stays = [_signatures_in(one).isdisjoint(*map(_signatures_in, results)) for one in old]
    except (ValueError, LookupError, TypeError, AttributeError, yaml.YAMLError) as error:
        raise QabiasError(f"the card of {model_id} has an invalid head: {error}", "correct its YAML head") from error
    ours = {**model, "results": [*itertools.compress(old, stays), *results]}
    data["model-index"] = [ours if one is model else one for one in models] if model in models else [*models, ours]

    def spliced(items: re.Match[str]) -> str:
        kept = itertools.compress(re.split(f"^(?={items[1]}-)", items[0], flags=re.MULTILINE)[1:], stays)
        return "".join([*kept, indent(_dumped(results), items[1])])

    by_item = re.sub(rf"(?<=results:\n)( *)-.*\n(?:{_BETWEEN}\1[ -].*\n)*", spliced, head, count=1)
    whole = _dumped({"model-index": data["model-index"]})
    of_key = rf"^[\"']?model-index[\"']? *:.*\n(?:{_BETWEEN}[] -].*\n)*|\Z"
    by_key = re.sub(of_key, lambda _: whole, head, count=1, flags=re.MULTILINE)
    for new in (by_item, by_key):  # the first keeps the form of other results, too
        with suppress(yaml.YAMLError):
            if yaml.safe_load(new) == data:
                return f"{opening}{new[:-1]}{closing}{card[there.end() if there else 0 :]}"
    # Such as with an anchor in one place and its alias in another.
    raise QabiasError(f"the results in the card of {model_id} cannot be kept", "write them as a plain list in YAML")


def _dumped(content: Any) -> str:
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=float("inf"))


def _signatures_in(result: Mapping[str, Any]) -> set[str]:
    """The signatures of a result; empty if another tool wrote it."""
    arguments = [metric.get("args") or {} for metric in result.get("metrics") or ()]
    return {one["signature"] for one in arguments if "signature" in one}


def _url(source_url: str | None, dataset_id: str) -> str:
    if source_url is not None and not re.fullmatch(r"https?://[!-~]+", source_url):
        raise QabiasError(f"the source URL is {shortened(source_url)}.", "Give an address that begins with https://.")
    return source_url or f"{constants.ENDPOINT}/datasets/{dataset_id}"


def _read(run_folder: Path, model_id: str, dataset: str, sample: bool) -> tuple[Run, str, str | None]:
    """The run, and the dataset with its revision, if `dataset` has one (ORG/NAME@COMMIT)."""
    dataset_id, at, revision = dataset.partition("@")
    check_repo_id(model_id)
    check_repo_id(dataset_id)
    if at and not re.fullmatch("[0-9a-f]{40}", revision):
        raise QabiasError(f"{shortened(revision)} is no commit of a dataset.", "Give its 40 hexadecimal digits.")
    run = Run.scored(run_folder)
    if missing := {"qabias", "source", "scorer", "norm"} - signature_fields(run.signature).keys():
        raise QabiasError(f"{run_folder}: the signature has no {min(missing)}", "rerun the command")
    limit, covered = run.arguments.limit, coverage_of(run.arguments)
    part, fix = (
        (covered, "answer all examples") if limit is None else (f"a sample of {limit} examples", "measure all examples")
    )
    if run.stopped_early:
        part, fix = "it stopped early", f"finish it with {arg('whole')}"
    if part and not sample:
        raise QabiasError(f"{run_folder}: {part}, not a complete run", f"{fix}, or add {arg('sample')}")
    return run, dataset_id, revision or None


def public_signature(run: Run, model_id: str) -> str:
    """The signature with the model's repository instead of a local folder."""
    model = escaped(run.arguments.model)
    return run.signature.replace(f"|model:{model}@local/", f"|model:{model_id}@local/")


def _texts(run: Run) -> str:
    """What a reader of a model card must know about the texts, or ""."""
    return "texts of qabias, not comparable with the papers" if run.arguments.source == BUNDLED else ""


def _shown(detail: Any) -> str:
    if isinstance(detail, list):
        return f"[{', '.join(map(_shown, detail))}]"
    return detail if isinstance(detail, str) else f"{detail:.4f}"


def _file_name(run: Run) -> str:
    """A file name for the run, e.g. `bbq-Age-qa-causal`; a long one ends with a digest."""
    fields = signature_fields(run.signature)
    arguments, own = run.arguments, run.benchmark.options
    chosen = [f"{name}-{value}" for name, value in arguments.options.items() if name in own and value != own[name][0]]
    parts = [
        run.benchmark.name,
        "" if arguments.source == BUNDLED else arguments.source,
        "fixed" if arguments.fixes else "",
        *sorted(chosen),
        arguments.config,
        format_name(run.signature),
        "" if arguments.permutations == 1 else f"orders{arguments.permutations}",
        fields["scorer"],
        fields.get("answers", "").partition(" ")[0],
        "" if fields["norm"] == "none" else fields["norm"],
        fields.get("score", ""),
        "" if arguments.limit is None else f"sample{arguments.limit}",
        "stopped" if run.stopped_early else "",
    ]
    name = re.sub(r"[^\w-]+", "-", "-".join(filter(None, parts)))
    if len(name) <= LONGEST_NAME:
        return name
    digest = hashlib.sha256(run.signature.encode()).hexdigest()[:8]
    return f"{name[: LONGEST_NAME - len(digest) - 1]}-{digest}"
