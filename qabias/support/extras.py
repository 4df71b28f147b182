"""What an installation without extras lacks, said in one line that names the command."""

import importlib.util

from qabias.errors import QabiasError

_LOCAL = ("torch", "transformers", "accelerate")
EXTRAS = {
    "local": _LOCAL,
    "demo": (*_LOCAL, "gguf"),
    "build": ("inflect",),
}
"""The extras of `setup.cfg` that commands of this package need, with the modules that they bring."""


def need(extra: str, what: str) -> None:
    """Refuse what an extra is needed for, where the extra is not installed."""
    missing = [name for name in EXTRAS[extra] if importlib.util.find_spec(name) is None]
    if missing:
        raise QabiasError(f'{what} needs {", ".join(missing)}; run: pip install "qabias[{extra}]"')
