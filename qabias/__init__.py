"""qabias: social-bias measurement for question answering and inference models.

    import qabias

    result = qabias.run("bbq", model="smollm2", config="Age", limit=200)
    print(result)

The functions below are those of the command line, under the same names. Nothing heavy is imported before one is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qabias.support.version import __version__ as __version__

if TYPE_CHECKING:
    from qabias.api.functions import ComparedResults as ComparedResults
    from qabias.api.functions import audit as audit
    from qabias.api.functions import compare as compare
    from qabias.api.functions import load as load
    from qabias.api.functions import read as read
    from qabias.api.functions import run as run
    from qabias.api.functions import score as score
    from qabias.api.result import Result as Result
    from qabias.errors import QabiasError as QabiasError
    from qabias.scorers.base import Request as Request

# Where each public name is defined.
_HOMES = {
    "audit": "qabias.api.functions",
    "run": "qabias.api.functions",
    "score": "qabias.api.functions",
    "compare": "qabias.api.functions",
    "load": "qabias.api.functions",
    "read": "qabias.api.functions",
    "Result": "qabias.api.result",
    "ComparedResults": "qabias.api.functions",
    "Request": "qabias.scorers.base",
    "QabiasError": "qabias.errors",
}
__all__ = ["ComparedResults", "QabiasError", "Request", "Result", "audit", "compare", "load", "read", "run", "score"]


# Hidden from type checkers, so that they find a name that is not there.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module 'qabias' has no attribute {name!r}")
        import importlib

        public = getattr(importlib.import_module(_HOMES[name]), name)
        globals()[name] = public
        return public


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
