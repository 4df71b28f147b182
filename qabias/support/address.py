"""HTTP addresses: checks, and display without secrets."""

import re
import urllib.parse

# What a scheme looks like in an address that may be malformed.
_SCHEME = re.compile(r"https?:/*|[a-z][a-z0-9+.-]*://|/*", re.IGNORECASE)


def is_address(url: str) -> bool:
    """Whether a text has the form of an address, with host labels of 1 to 63 characters."""
    try:
        parts = urllib.parse.urlsplit(url)
        labels = (parts.hostname or "").removesuffix(".").split(".")
        return parts.scheme in ("http", "https") and parts.port != 0 and all(0 < len(label) < 64 for label in labels)
    except ValueError:
        return False


def without_secrets(url: str) -> str:
    """An address without user, password, query and fragment, which may be secret."""
    match = _SCHEME.match(url)
    scheme = match.group() if match else ""
    user, _, rest = url[len(scheme) :].rpartition("@")
    if "?" in user or "#" in user:  # either may also begin a query
        return f"{scheme}..."
    return scheme + re.split("[?#]", rest, maxsplit=1)[0]
