"""The one exception that a user is meant to read."""


class QabiasError(ValueError):
    """A mistake in the input or the surroundings that the user can fix."""
