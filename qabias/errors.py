"""The one exception that a user is meant to read."""


class QabiasError(ValueError):
    """A mistake in the input or the surroundings that the user can fix.

    Its text has two lines: what happened and where, then the fix.

    Args:
        problem: What happened, with the file, row or option where it happened.
        fix: The one action that helps, with a command if there is one.
    """

    def __init__(self, problem: str, fix: str = "") -> None:
        super().__init__(problem, fix)

    def __str__(self) -> str:
        problem, fix = self.args
        return f"{problem}\n  fix: {fix}" if fix else str(problem)
