"""A task of inspect_ai ends when its conditions are decided, as `qabias run --until` does."""

from collections import defaultdict

import pytest

pytest.importorskip("inspect_ai", reason="inspect_ai is not installed (pip install '.[inspect]')")

from inspect_ai._util.error import PrerequisiteError

from qabias.inspect_tasks.tasks import make_task

from .inspect_models import evaluate


def test_a_clear_case_is_decided_after_some_samples_and_the_others_are_skipped(tmp_path):
    task = make_task("bbq", {"config": "Religion", "limit": 400, "until": "bias_ambig<0.5"})
    log = evaluate(task, defaultdict(lambda: "A"), tmp_path, max_samples=1)
    stopped = log.results.early_stopping
    n_asked = log.results.completed_samples
    assert stopped.metadata["verdicts"][0].startswith("Pass")
    low, high = (log.results.scores[0].metrics[f"bias_ambig_{end}"].value for end in ("low", "high"))
    shown = stopped.metadata["verdicts"][0]
    assert f"[{100 * low:+.1f}, {100 * high:+.1f}]".replace("-", "−") in shown, "another interval than the verdict's"
    assert 0 < n_asked < 300
    assert n_asked + len(stopped.early_stops) == len(task.dataset)


def test_a_task_without_conditions_has_no_early_stopping():
    assert make_task("bbq", {"config": "Religion", "limit": 40}).early_stopping is None


@pytest.mark.parametrize("conditions", [{"until": "bias<0.1"}, {"until": "bias_ambig<0.1", "by": "categry"}])
def test_a_wrong_condition_is_refused_before_any_sample(conditions):
    with pytest.raises(PrerequisiteError, match="unknown"):
        make_task("bbq", {"config": "Religion", "limit": 40, **conditions})
