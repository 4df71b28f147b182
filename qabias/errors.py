"""The one exception that a user is meant to read.

Everything a user can cause (an unknown configuration, a damaged file, a wrong option) raises `QabiasError`
with a message that names the place and the fix. The command line prints it as one line and exits with 2.
"""


class QabiasError(ValueError):
    """A mistake in the input or the surroundings that the user can fix."""
