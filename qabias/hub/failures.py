"""What goes wrong between here and the Hub, each in one line that names the fix."""

from collections.abc import Iterator
from contextlib import contextmanager

from huggingface_hub import constants, get_token
from huggingface_hub.errors import (
    HfHubHTTPError,
    HTTPError,
    LocalTokenNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
)

from qabias.errors import QabiasError
from qabias.hub.changes import Push

_LOGIN = "run `hf auth login` again, or fix HF_TOKEN, which is read first"


@contextmanager
def told_in_one_line(plan: Push) -> Iterator[None]:
    """Turn the errors of `huggingface_hub` into one that a user is meant to read, in which the token is not shown."""
    try:
        yield
    except QabiasError:
        raise
    except LocalTokenNotFoundError as error:
        raise QabiasError(
            "not logged in to the Hub: run `hf auth login`, or put a token that may write into HF_TOKEN"
        ) from error
    except OfflineModeIsEnabled as error:
        raise QabiasError("the Hub is switched off: unset HF_HUB_OFFLINE, or look with --dry-run") from error
    except UnicodeEncodeError as error:
        raise QabiasError(f"the token has a character that no token has; {_LOGIN}") from error
    except (HTTPError, RuntimeError, ValueError) as error:
        raise QabiasError(_without_token(_explain(error, plan))) from None


def _without_token(text: str) -> str:
    token = get_token()
    return text.replace(token, "[token]") if token else text


def _explain(error: BaseException, plan: Push) -> str:
    # An upload that fails in a thread comes as a RuntimeError around what happened.
    if isinstance(error, RuntimeError) and error.__cause__ is not None:
        return _explain(error.__cause__, plan)
    if isinstance(error, HfHubHTTPError):
        return _explain_answer(error, plan)
    if isinstance(error, HTTPError):
        return (
            f"{constants.ENDPOINT}: the connection failed ({type(error).__name__}); look at the network and run the "
            "same command again, what has arrived is not sent twice"
        )
    return f"{plan.kind} {plan.repo_id}: the Hub refused the files or broke off: {error}"


def _explain_answer(error: HfHubHTTPError, plan: Push) -> str:
    status = error.response.status_code
    said = error.server_message or error.response.reason_phrase
    owner = plan.repo_id.partition("/")[0]
    if status == 401 and not isinstance(error, RepositoryNotFoundError):
        return f"the Hub does not accept the token ({said}): {_LOGIN}"
    if status in (401, 403, 404):
        return (
            f"{plan.kind} {plan.repo_id}: this login may not write there ({status}: {said}); check that {owner} is "
            "your name or an organization of yours, and that the token has write permission"
        )
    fix = "run the same command again later" if status >= 429 else "fix that and run the same command again"
    return f"{plan.kind} {plan.repo_id}: the Hub answered {status}: {said}; {fix}"
