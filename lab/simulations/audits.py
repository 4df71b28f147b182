"""What does an audit answer about models whose bias is known?

    python -m lab.simulations.audits --quick
    python -m lab.simulations.audits --runs 100    two hours on one core

Each run draws the answers of a model anew, and audits it. A wrong answer says that a model without bias has one, or
that a biased one has none above the threshold.
"""

import hashlib
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partialmethod
from pathlib import Path
from unittest.mock import patch

from lab.options import make_parser
from qabias.runs.arguments import Machine, RunArguments
from qabias.scorers.base import Request
from qabias.scorers.baseline import BaselineScorer
from qabias.studies.audit import Audit, audit

RUNS, QUICK = 20, 1
BUDGETS = (400, 2744)
MOST_WRONG = 0.05
KNOWS = "Does it follow stereotypes when it cannot know?"


@dataclass(frozen=True)
class Model:
    """A model that is right, but for some answers.

    Attributes:
        errs: Share of random answers.
        bias: Share of stereotyped answers, to the questions of a category.
        category: The category; "" for all.
        role: The role of its usual answer.
        place: The only place that it chooses, or None.
        knows: The only right state of the answer to `KNOWS`, or "".
    """

    errs: float = 0.0
    bias: float = 0.0
    category: str = ""
    role: str = "gold"
    place: int | None = None
    knows: str = ""


MODELS = {
    "99.7% right": Model(errs=0.003, knows="no"),
    "15 points in one category": Model(errs=0.01, bias=0.15, category="Age", knows="yes"),
    "30 points in one category": Model(errs=0.01, bias=0.3, category="Age", knows="yes"),
    "5 points overall": Model(errs=0.01, bias=0.05, knows="no"),
    "guessing": Model(errs=1.0, knows="not interpretable"),
    "always UNKNOWN": Model(role="unknown"),
    "one place": Model(place=0, knows="not interpretable"),
}


def drawn(*parts: object) -> float:
    """A reproducible number in [0, 1)."""
    return int.from_bytes(hashlib.sha256("/".join(map(str, parts)).encode()).digest()[:6], "big") / 2**48


def choose(scorer: BaselineScorer, request: Request, model: Model, seed: int) -> int:
    """The option of a model."""
    n, key = len(request.options), request.key
    if model.place is not None:
        return model.place
    if key.startswith(model.category) and "unknown" in request.roles and drawn(seed, "bias", key) < model.bias:
        return request.roles["biased"] if request.roles["gold"] == request.roles["unknown"] else request.roles["gold"]
    if model.role not in request.roles or drawn(seed, "errs", key) < model.errs:
        return int(n * drawn(seed, "which", key))
    return request.roles[model.role]


def audited(model: Model, budget: int, seed: int, folder: Path) -> Audit:
    """The audit of one drawing of a model."""
    machine = Machine(shows_progress=False)
    with (
        patch.object(BaselineScorer, "_choose", partialmethod(choose, model=model, seed=seed)),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", UserWarning)
        arguments = RunArguments("bbq", "baseline:oracle", "", "", seed=seed)
        return audit(arguments, folder, machine, budget=budget)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the answers by model; 1 if too many are wrong."""
    parser = make_parser(__doc__, f"{QUICK} audit of each model, with {BUDGETS[0]} questions")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"audits of each model and budget (default: {RUNS})")
    chosen, is_wrong = parser.parse_args(arguments), False
    quick = chosen.quick
    for budget in BUDGETS[:1] if quick else BUDGETS:
        for name, model in MODELS.items():
            counts: dict[str, Counter[str]] = {}
            n_runs, n_wrong = QUICK if quick else chosen.runs, 0
            for seed in range(n_runs):
                with tempfile.TemporaryDirectory() as folder:
                    answers = {one.question: one for one in audited(model, budget, seed, Path(folder)).answers}
                for question, answer in answers.items():
                    counts.setdefault(question, Counter())[answer.state] += 1
                knows = answers[KNOWS].state
                claims = {"yes", "no"} - {model.knows}
                others = [one for one in answers if one != KNOWS and answers[one].state == "yes"]
                n_wrong += bool(model.knows and knows in claims) or bool(others)
            is_wrong |= n_wrong > MOST_WRONG * n_runs + 3 * (MOST_WRONG * (1 - MOST_WRONG) * n_runs) ** 0.5
            print(f"{budget:,} questions, {name}: {n_wrong} of {n_runs} audits wrong", flush=True)
            for question, states in counts.items():
                print(f"    {question:<62}{dict(states)}", flush=True)
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main())
