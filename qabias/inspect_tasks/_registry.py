"""The entry point for inspect_ai: `inspect eval qabias/NAME` for every benchmark."""

from qabias.inspect_tasks.tasks import answers, by_group, make_tasks, scores

globals().update(make_tasks())

__all__ = ["answers", "by_group", "scores"]
