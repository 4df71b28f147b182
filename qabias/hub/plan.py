"""A push in words: what people read before anything is sent."""

from __future__ import annotations

from qabias.hub.changes import Push
from qabias.hub.push import Difference


def intended_way(plan: Push, create_pr: bool) -> str:
    """How the files would reach the repository, before the Hub is asked."""
    if not create_pr:
        return "directly to main"
    return "as a pull request" + (" (directly if the repository is new)" if plan.may_be_created else "")


def plan_lines(plan: Push, way: str, difference: Difference | None = None) -> list[str]:
    """A plan as lines: target, way and files with their sizes, and what the Hub has of them where that is known."""
    lines = [f"{plan.kind} {plan.repo_id} ({plan.url}), {way}", f"  {plan.title}: {plan.description}"]
    width = max(map(len, plan.files))
    for path in plan.files:
        state = "" if difference is None else f"  {difference.states[path]}"
        lines.append(f"  {path:<{width}}{plan.size(path):>12,} bytes{state}")
    sent = list(plan.files) if difference is None else difference.sent
    if difference is not None:
        for path in difference.removed:
            lines.append(f"  {path:<{width}}{'':>12}        removed: it lies in a folder of this {plan.kind}")
    return [*lines, f"  to send: {len(sent)} files, {sum(map(plan.size, sent)):,} bytes"]
