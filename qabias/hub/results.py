"""The headline scores of a run for the measured model's repository."""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import yaml
from huggingface_hub import EvalResult, EvalResultEntry, ModelCard, ModelCardData, eval_result_entries_to_yaml

from qabias.benchmarks.caveats import bound_of, possible_range, range_in_words, reasons
from qabias.benchmarks.headline import parts
from qabias.building.origin import BUNDLED
from qabias.errors import QabiasError
from qabias.hub.push import check_repo_id
from qabias.runs.outcomes import answered_in_words, answered_share
from qabias.runs.scored import ScoredRun, read_scored
from qabias.runs.signature import coverage_of, escaped, format_name, signature_fields
from qabias.support.files import MOST_BYTES, regular
from qabias.support.outputs import check_file

LONGEST_NAME = 120  # characters of a results file's name, without its ending; a system message can be longer


class Headline(NamedTuple):
    """One headline score of a run."""

    config: str
    name: str
    value: float | None
    interval: tuple[float, float] | None
    reason: str
    answered: float | None
    possible: tuple[float, float] | None
    note: str
    bound: float | None


def task_id(config: str, score: str) -> str:
    """Return the name of a dataset's task, e.g. "Age/bias_ambig"."""
    return f"{config}/{score}"


def headlines(run_folder: Path) -> list[Headline]:
    """The headline scores of a run, by set if sets have their own, including undefined ones."""
    return list(_headlines(read_scored(run_folder)))


def result_files(
    run_folder: Path, model_id: str, dataset_id: str, source_url: str | None = None, *, sample: bool = False
) -> dict[str, bytes]:
    """The file for `.eval_results/` of the model's repository."""
    run = _read(run_folder, model_id, dataset_id, sample)
    scores = list(_headlines(run))
    signature, version = public_signature(run, model_id), signature_fields(run.signature)["qabias"]
    entries = [
        EvalResultEntry(
            dataset_id=dataset_id,
            task_id=task_id(score.config, score.name),
            value=score.value,
            date=run.file.created,
            source_url=source_url or f"https://huggingface.co/datasets/{dataset_id}",
            source_name=f"qabias {version}",
            notes="; ".join(filter(None, (signature, score.note))),
        )
        for score in scores
        if score.value is not None
    ]
    left_out = {task_id(score.config, score.name): score.reason for score in scores if score.value is None}
    if not entries:
        why = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        raise QabiasError(f"{run_folder}: no headline score is defined ({why})", "publish a run with defined scores")
    comments = "".join(f"# {name} is left out: {reason}.\n" for name, reason in left_out.items())
    text = yaml.safe_dump(eval_result_entries_to_yaml(entries), sort_keys=False, allow_unicode=True, width=1000)
    return {f".eval_results/{_file_name(run)}.yaml": (comments + text).encode()}


def check_replaceable(path: Path, content: bytes, *, overwrite: bool = False) -> None:
    """Refuse to replace a results file of another run."""
    [new] = _signatures(content)
    check_file(path, lambda _: True)
    if not path.exists() or overwrite:
        return
    old = _signatures(regular(path, MOST_BYTES).read_bytes())
    if old != {new}:
        other = " and ".join(sorted(old)) or "(unreadable)"
        raise QabiasError(
            f"{path}: holds results with the signature {other}, not {new}",
            "choose another --output, or add --overwrite",
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


def model_index(run_folder: Path, model_id: str, dataset_id: str, *, sample: bool = False) -> list[EvalResult]:
    """The same scores for the `model-index` of a model card; the metric's arguments hold signature and interval."""
    run = _read(run_folder, model_id, dataset_id, sample)
    fields = signature_fields(run.signature)
    signature = public_signature(run, model_id)
    return [
        EvalResult(
            task_type=run.benchmark.facts.task_type,
            dataset_type=dataset_id,
            dataset_name=run.benchmark.title,
            dataset_config=score.config,
            dataset_split="test",
            dataset_args={"source": fields["source"]},
            metric_type=score.name,
            metric_name=score.name,
            metric_value=score.value,
            metric_args={"signature": signature, **_details(score)},
            source_name=f"qabias {fields['qabias']}",
            source_url=f"https://huggingface.co/datasets/{dataset_id}",
        )
        for score in _headlines(run)
        if score.value is not None
    ]


def _details(score: Headline) -> dict[str, Any]:
    """The share of answers, the bound, and the interval, or the possible range if many answers are missing."""
    ends = ("range", score.possible) if score.possible else ("interval", score.interval)
    fields = {"answered": score.answered, "bound": score.bound, ends[0]: ends[1] and list(ends[1])}
    return {name: value for name, value in fields.items() if value is not None}


def update_card(card: str, results: list[EvalResult], model_id: str) -> str:
    """Put results into the `model-index` of a model card, replacing older ones of the same config."""
    try:
        parsed = ModelCard(card or "---\n---\n")
    except (ValueError, yaml.YAMLError) as error:
        raise QabiasError(f"the card of {model_id} has an invalid head: {error}", "correct its YAML head") from error
    data = cast(ModelCardData, parsed.data)
    new = {(result.unique_identifier, result.metric_type) for result in results}
    measured = {result.unique_identifier for result in results}
    kept = [
        old
        for old in data.eval_results or []
        if (old.unique_identifier, old.metric_type) not in new
        # Drop older values of scores that are undefined in this run.
        and not ((old.source_name or "").startswith("qabias ") and old.unique_identifier in measured)
    ]
    data.eval_results = [*kept, *results]
    data.model_name = data.model_name or model_id.rpartition("/")[2]
    return str(parsed)


def _read(run_folder: Path, model_id: str, dataset_id: str, sample: bool) -> ScoredRun:
    check_repo_id(model_id)
    check_repo_id(dataset_id)
    run = read_scored(run_folder)
    if missing := {"qabias", "source", "scorer", "norm"} - signature_fields(run.signature).keys():
        raise QabiasError(f"{run_folder}: the signature has no {min(missing)}", "rerun the command")
    limit, covered = run.arguments.limit, coverage_of(run.arguments)
    part, fix = (
        (covered, "answer all examples") if limit is None else (f"a sample of {limit} examples", "measure all examples")
    )
    if part and not sample:
        raise QabiasError(f"{run_folder}: {part}, not a complete run", f"{fix}, or add --sample")
    return run


def public_signature(run: ScoredRun, model_id: str) -> str:
    """The signature with the model's repository instead of a local folder."""
    model = escaped(run.arguments.model)
    return run.signature.replace(f"|model:{model}@local/", f"|model:{model_id}@local/")


def _headlines(run: ScoredRun) -> Iterator[Headline]:
    why = reasons(run.benchmark.facts, run.scores)
    for pointer, scores in parts(run.benchmark, run.scores).items():
        config = pointer.rpartition("/")[2] or run.arguments.config
        if config not in run.benchmark.configs:
            raise QabiasError(f"{run.folder}: {config} is not a config on the Hub", "measure one config, or all")
        for name in run.benchmark.facts.tasks:
            low, high = scores["ci"].get(name, (None, None))
            measure = run.benchmark.facts.measure(name)
            possible = range_in_words(scores, measure)
            with_missing = f"with the missing answers {possible}" if possible else ""
            yield Headline(
                config=config,
                name=name,
                value=scores[name],
                interval=None if low is None else (low, high),
                reason=why.get(f"{pointer}/{name}", ""),
                answered=answered_share(scores),
                possible=possible_range(scores, measure),
                note="; ".join(filter(None, (answered_in_words(scores), with_missing))),
                bound=bound_of(scores, measure),
            )


def _file_name(run: ScoredRun) -> str:
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
    ]
    name = re.sub(r"[^\w-]+", "-", "-".join(filter(None, parts)))
    if len(name) <= LONGEST_NAME:
        return name
    digest = hashlib.sha256(run.signature.encode()).hexdigest()[:8]
    return f"{name[: LONGEST_NAME - len(digest) - 1]}-{digest}"
