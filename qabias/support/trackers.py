"""Scores in the experiment that the caller has open in trackio, wandb or mlflow; none of them is imported here."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Collection, Mapping

from qabias.support.suggest import first_line


def log_scores(
    prefix: str, scores: Mapping[str, float], signature: str, step: int | None = None, without: Collection[str] = ()
) -> None:
    """Log the defined scores as PREFIX/SCORE to all open experiments, except of the trackers that log them already.

    The signature is a config value in wandb, a tag in mlflow and a text in trackio. A failure is a warning.
    """
    values = {f"{prefix}/{name}": value for name, value in scores.items() if not math.isnan(value)}
    texts = {f"{prefix}/signature": signature}
    trackio, wandb, mlflow = (
        None if name in without else sys.modules.get(name) for name in ("trackio", "wandb", "mlflow")
    )
    try:
        if trackio and trackio.context_vars.current_run.get():
            trackio.log({**values, **texts}, step=step)
        if wandb and wandb.run:
            wandb.config.update(texts, allow_val_change=True)
            # wandb drops values of a step before its own.
            wandb.log(values if step is None else {**values, "train/global_step": step})
        if mlflow and mlflow.active_run():
            mlflow.set_tags(texts)
            mlflow.log_metrics(values, step=step)
    except Exception as error:
        warnings.warn(f"the scores did not reach every tracker: {first_line(error)}", stacklevel=2)
