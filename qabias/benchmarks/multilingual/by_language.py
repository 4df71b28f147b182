"""The scores of one run of several languages, language by language."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from qabias.benchmarks.bbq.columns import ACCURACY, BIAS, N_TEMPLATES, READ_BIAS, READ_INTERVALS, names, scored
from qabias.benchmarks.bbq.roles import score
from qabias.benchmarks.scoring import Rules
from qabias.tables.model import Column, Figure, Table

LANGUAGES = "languages"
"""Name of the table of these scores."""

_COST = Column("accuracy_cost", "Cost of non-alignment", "signed")


def by_language(table: pa.Table, answers: pa.Table, languages: Sequence[str], rules: Rules) -> list[Table]:
    """Bias scores and accuracies of every language; no table where there is one language."""
    if len(set(languages)) < 2:
        return []
    groups = score(table, answers, {"language": [(language,) for language in languages]}, rules)["by"]["language"]
    bias = [*BIAS.values(), _COST]
    return [
        scored(
            LANGUAGES,
            "By language",
            "",
            f"{READ_BIAS} {READ_INTERVALS} Read the accuracies first: who cannot read a language guesses, and guessing "
            "has a bias near 0.",
            "Bias",
            [Column("language", "Language", "text")],
            groups,
            [*bias, *ACCURACY.values(), Column("n", "Examples", "count"), N_TEMPLATES],
            Figure("intervals", "language", names(bias)),
        )
    ]
