"""Ways of asking a model, found by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from qabias.errors import QabiasError

if TYPE_CHECKING:
    from qabias.scorers.base import Scorer

BASELINE_PREFIX = "baseline:"
SCORERS = ("causal",)


def load_scorer(scorer: str | None, model: str, **options: Any) -> Scorer:
    """Load a model and the way of asking it.

    Args:
        scorer: One of `SCORERS`, None for the default of the model.
        model: `"baseline:KIND"` (no scorer needed), or a name or path that the scorer can load.
        **options: For a baseline `seed`; else `revision`, `device` and `dtype` of the model, and the scorer's own
            (`token_budget` and `layout` of `causal`).

    Returns:
        The scorer, ready to score.

    Raises:
        QabiasError: If the scorer or the model is unknown.
    """
    if model.startswith(BASELINE_PREFIX):
        from qabias.scorers.baseline import BaselineScorer

        return BaselineScorer(model.removeprefix(BASELINE_PREFIX), seed=options.get("seed", 0))
    scorer = scorer or "causal"
    if scorer not in SCORERS:
        raise QabiasError(
            f"unknown scorer {scorer!r}; choose one of {', '.join(SCORERS)}, or a model named {BASELINE_PREFIX}KIND"
        )
    from qabias.models import load_causal
    from qabias.scorers.causal import CausalScorer

    loading = {name: options[name] for name in ("revision", "device", "dtype") if name in options}
    asking = {name: options[name] for name in ("token_budget", "layout") if name in options}
    return CausalScorer(load_causal(model, **loading), **asking)
