"""The signature of a run: one line that pins what was measured."""

import re
from collections.abc import Mapping

from qabias.benchmarks import Origin, PromptFormat
from qabias.building.origin import BUNDLED
from qabias.runs.arguments import RunArguments
from qabias.scorers.base import ConfiguredScorer, Scorer
from qabias.support.version import __version__

# Sets at the first look and their growth, and how the error of a run that may stop early is spent.
LOOKS = {"questions": "looks 34*1.5^k/even", "templates": "looks 32*2^k/even"}
COLLECTED = "answers"  # scorer name of external answers in signatures

# Characters that end a field or a line or cannot be shown, and % if it looks like an escape.
_ESCAPED = re.compile(r"[|\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]|%(?=[0-9A-F]{2}|u[0-9A-F]{4})")
_COVERED = re.compile(r" (\d+) of (\d+)$")
_ESCAPE = re.compile(r"%(?:([0-9A-F]{2})|u([0-9A-F]{4}))")


def make_signature(arguments: RunArguments, origin: Origin, prompt_format: PromptFormat, scorer: Scorer) -> str:
    """Make the signature of a run that queries a model."""
    settings = scorer.settings if isinstance(scorer, ConfiguredScorer) else {}
    # The benchmark's own options are part of the origin's version.
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
        "scores": arguments.scores,
        "until": until_field(arguments),
        "seed": arguments.seed,
        "qabias": __version__,
    }
    for name, wanted in (("score", arguments.rules), ("scores", arguments.scores), ("until", arguments.until)):
        if not wanted:
            del fields[name]
    return joined(arguments.benchmark_name, fields)


def collected_signature(arguments: RunArguments, origin: Origin, prompt_format: PromptFormat | None) -> str:
    """Make the signature of external answers."""
    is_drawn = arguments.source != BUNDLED
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
        "coverage": coverage_field(arguments),
        "qabias": __version__,
    }
    return joined(arguments.benchmark_name, {name: value for name, value in fields.items() if value})


def until_field(arguments: RunArguments) -> str:
    """The field `until`: the conditions and the looks; "" without conditions."""
    looks = LOOKS["questions" if " about questions" in arguments.until else "templates"]
    return f"{arguments.until} in {looks}" if arguments.until else ""


def with_rules(signature: str, rules: Mapping[str, str]) -> str:
    """Return the signature of the same answers with other scoring rules."""
    parts = [part for part in signature.split("|") if not part.startswith("score:")]
    place = next(number for number, part in enumerate(parts) if part.startswith("norm:")) + 1
    return "|".join([*parts[:place], *([f"score:{rules_text(rules)}"] if rules else []), *parts[place:]])


def rules_text(rules: Mapping[str, str]) -> str:
    """The field `score`: the scoring rules that differ from the defaults."""
    return "+".join(f"{name}={rules[name]}" for name in sorted(rules))


def joined(benchmark: str, fields: Mapping[str, object]) -> str:
    """Join fields to a signature; `signature_fields` reads any characters back."""
    return "|".join([benchmark, *(f"{name}:{escaped(str(value))}" for name, value in fields.items())])


def escaped(text: str) -> str:
    """Escape a text for a field: "a|b" becomes "a%7Cb", which cannot add a field or a line."""
    return _ESCAPED.sub(lambda match: f"%{n:02X}" if (n := ord(match[0])) < 0x100 else f"%u{n:04X}", text)


def signature_fields(signature: str) -> dict[str, str]:
    """Read the fields of a signature by name; its first part, the benchmark, has none."""
    parts = (part.partition(":") for part in signature.split("|")[1:])
    return {name: _ESCAPE.sub(lambda escape: chr(int(escape[1] or escape[2], 16)), value) for name, _, value in parts}


def format_name(signature: str) -> str:
    """Name of the prompt format in a signature, without its version; "" if there is none."""
    return signature_fields(signature).get("format", "").partition("@")[0]


def scorer_name(signature: str) -> str:
    """Name of the scorer in a signature, without its options; "" if there is none."""
    return signature_fields(signature).get("scorer", "").partition("+")[0]


def coverage_of(arguments: RunArguments) -> str:
    """Return the share of answered examples as a sentence; "" if all are answered, or a model was queried."""
    counts = _counts(arguments)
    if counts is None:
        return ""
    n, n_examples = counts
    share = f"{100 * n / n_examples:.1f}"
    return (
        f"{n:,} of {n_examples:,} examples of {arguments.config} have an answer: "
        f"{'less than 0.1' if share == '0.0' else share} %"
    )


def coverage_field(arguments: RunArguments) -> str:
    """Return this share for a signature: "8/3680", or ""."""
    counts = _counts(arguments)
    return "" if counts is None else "{}/{}".format(*counts)


def _counts(arguments: RunArguments) -> tuple[int, int] | None:
    """Answered examples and all examples; None if equal, or a model was queried."""
    covered = _COVERED.search(arguments.answers)
    if covered is None or covered[1] == covered[2]:
        return None
    return int(covered[1]), int(covered[2])
