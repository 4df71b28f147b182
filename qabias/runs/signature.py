"""The signature of a run: one line that pins what was measured."""

from collections.abc import Mapping

from qabias.benchmarks import Origin, PromptFormat
from qabias.building.origin import is_bundled
from qabias.runs.arguments import RunArguments
from qabias.scorers.base import Scorer, SettledScorer
from qabias.support.version import __version__

COLLECTED = "answers"
"""What stands in place of a scorer where others have collected the answers."""


def make_signature(arguments: RunArguments, origin: Origin, prompt_format: PromptFormat, scorer: Scorer) -> str:
    """One line that pins what was measured; two scores may be compared where it says so.

    Args:
        arguments: What is measured.
        origin: Where the texts come from.
        prompt_format: How they are put.
        scorer: Who is asked, and how.

    Returns:
        For example "toy|source:bundled@1|config:Age|format:qa@1|model:...|scorer:causal|norm:none|...".
    """
    settings = scorer.settings if isinstance(scorer, SettledScorer) else {}
    # What the benchmark's own options choose stands in the version of the origin.
    options = {**settings, **arguments.scorer_options}
    fields = {
        "source": origin.version,
        "config": arguments.config,
        "format": prompt_format.signature,
        "model": "@".join(filter(None, (arguments.model, scorer.model_signature))),
        "scorer": scorer.name + "".join(f"+{name}={options[name]}" for name in sorted(options)),
        "norm": arguments.norm,
        "score": rules_text(arguments.rules),
        "limit": arguments.limit or "none",
        "seed": arguments.seed,
        "qabias": __version__,
    }
    if not arguments.rules:
        del fields["score"]
    return "|".join([arguments.benchmark_name, *(f"{name}:{value}" for name, value in fields.items())])


def collected_signature(arguments: RunArguments, origin: Origin, prompt_format: PromptFormat | None) -> str:
    """One line that pins answers that others collected.

    Args:
        arguments: What is scored.
        origin: Where the texts come from.
        prompt_format: How they were put; None where it is not known.

    Returns:
        As of a run, without what is of a model; with the seed where the texts are not the bundled ones, because it
        draws the order and the wording of their answers.
    """
    is_drawn = not is_bundled(arguments.source)
    fields = {
        "source": origin.version,
        "config": arguments.config,
        "format": prompt_format.signature if prompt_format else "",
        "model": arguments.model,
        "scorer": COLLECTED + (f"+by={arguments.asked_by}" if arguments.asked_by else ""),
        "norm": arguments.norm,
        "score": rules_text(arguments.rules),
        "seed": str(arguments.seed) if is_drawn else "",
        "answers": arguments.answers,
        "qabias": __version__,
    }
    return "|".join([arguments.benchmark_name, *(f"{name}:{value}" for name, value in fields.items() if value)])


def with_rules(signature: str, rules: Mapping[str, str]) -> str:
    """The signature of the same answers, counted by other rules."""
    parts = [part for part in signature.split("|") if not part.startswith("score:")]
    place = next(number for number, part in enumerate(parts) if part.startswith("norm:")) + 1
    return "|".join([*parts[:place], *([f"score:{rules_text(rules)}"] if rules else []), *parts[place:]])


def rules_text(rules: Mapping[str, str]) -> str:
    """The field `score`: the rules by which answers are counted, where they are not the default."""
    return "+".join(f"{name}={rules[name]}" for name in sorted(rules))


def signature_fields(signature: str) -> dict[str, str]:
    """The fields of a signature by name; its first part, the benchmark, has none."""
    parts = (part.partition(":") for part in signature.split("|")[1:])
    return {name: value for name, _, value in parts}


def format_name(signature: str) -> str:
    """Name of the prompt format in a signature, without its version; "" where there is none."""
    return signature_fields(signature).get("format", "").partition("@")[0]


def scorer_name(signature: str) -> str:
    """Name of the scorer in a signature, without its options; "" where there is none."""
    return signature_fields(signature).get("scorer", "").partition("+")[0]
