"""The signature of a run: one line that pins what was measured."""

from qabias import __version__
from qabias.benchmarks import Origin, PromptFormat
from qabias.runs.arguments import RunArguments
from qabias.scorers.base import Scorer


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
    options = arguments.scorer_options  # what the benchmark's own choose stands in the version of the origin
    fields = {
        "source": origin.version,
        "config": arguments.config,
        "format": prompt_format.signature,
        "model": "@".join(filter(None, (arguments.model, scorer.model_signature))),
        "scorer": scorer.name + "".join(f"+{name}={options[name]}" for name in sorted(options)),
        "norm": arguments.norm,
        "limit": arguments.limit or "none",
        "seed": arguments.seed,
        "qabias": __version__,
    }
    return "|".join([arguments.benchmark, *(f"{name}:{value}" for name, value in fields.items())])


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
