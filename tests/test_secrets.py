"""The token of the Hub: in no message and no traceback, whatever an answer or a library says."""

import traceback
from types import SimpleNamespace

import pytest
from huggingface_hub.errors import HfHubHTTPError, HTTPError

from qabias.errors import QabiasError
from qabias.hub.push import explained

TOKEN = "hf_notARealTokenButLongEnough"
PLAN = SimpleNamespace(kind="dataset", repo_id="me/mine")


def answered(status):
    response = SimpleNamespace(status_code=status, reason_phrase="", headers={}, request=None)
    return HfHubHTTPError(f"no {TOKEN}", response=response, server_message=f"invalid token {TOKEN}")


def wrapped(error):
    """An error as it comes from a thread that sends."""
    around = RuntimeError("in a thread")
    around.__cause__ = error
    return around


@pytest.mark.parametrize(
    "error",
    [
        answered(401),
        answered(403),
        answered(500),
        HTTPError(f"Illegal header value b'Bearer {TOKEN}'"),
        ValueError(f"cannot send Bearer {TOKEN}"),
    ],
)
@pytest.mark.parametrize("put", [lambda error: error, wrapped])
def test_the_token_is_in_no_message_and_no_traceback(error, put, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with pytest.raises(QabiasError) as told, explained(PLAN):
        raise put(error)
    assert str(told.value)
    assert TOKEN not in "".join(traceback.format_exception(told.value))
