"""HTTP with limits on size and time of a reply."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import httpx2

from qabias.support.waiting import wait_for

REDIRECTS = (301, 302, 303, 307, 308)

# Nothing is unpacked, because a few bytes may unpack to very many. No connection carries two requests: HTTP/1.1 matches
# replies to requests by their order only, so one surplus reply would answer the next request.
_HEADERS = {"Accept-Encoding": "identity", "Connection": "close"}
_PACKED = ("gzip", "x-gzip", "deflate", "br", "zstd", "compress", "x-compress")


# Below this level they log whole addresses, with the user's password and what a redirect holds.
for _name in ("httpx2", "httpcore2"):
    logging.getLogger(_name).setLevel(logging.WARNING)


class PassingError(Exception):
    """A temporary failure: no connection, no reply in time, a broken or short body."""


class LateError(PassingError):
    """No reply in time."""


class LastingError(Exception):
    """A permanent failure: no address, no trust, a body above the limit."""


class Reply(NamedTuple):
    """A reply."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class Bounds(NamedTuple):
    """Limits of size and time."""

    most_bytes: int
    seconds: float


class HttpClient:
    """Sends requests, also from several threads. Use it as a context manager."""

    def __init__(
        self, bounds: Bounds, *, timeout: float, connections: int = 1, headers: Mapping[str, str] | None = None
    ) -> None:
        self._bounds = bounds
        self._timeout = timeout
        try:
            self._client = httpx2.AsyncClient(
                headers={**_HEADERS, **(headers or {})},
                timeout=timeout,
                verify=_trusted(*map(os.environ.get, ("SSL_CERT_FILE", "SSL_CERT_DIR"))),
                limits=httpx2.Limits(max_connections=connections, max_keepalive_connections=0),
            )
        except (ValueError, ImportError, httpx2.InvalidURL) as error:  # which may quote a password
            raise LastingError(
                f"a proxy in http_proxy, https_proxy or all_proxy cannot be used ({type(error).__name__}); write it as "
                "http://HOST:PORT (one of SOCKS needs the Python package socksio), or unset the variable"
            ) from None
        except OSError as error:  # of the certificates, which are read here
            raise LastingError(
                f"cannot read the certificates that the variable SSL_CERT_FILE or SSL_CERT_DIR names: {error}"
            ) from None

    def __enter__(self) -> HttpClient:
        return self

    def __exit__(self, *_: object) -> None:
        wait_for(self._client.aclose())

    def send(self, method: str, url: str, json: Any = None, **content: Any) -> Reply:
        """Send a request (JSON, or other content as in httpx) and read the whole reply, without following redirects."""
        try:
            return wait_for(asyncio.wait_for(self._send(method, url, json, **content), self._bounds.seconds))
        except (asyncio.TimeoutError, TimeoutError):
            raise LateError(f"no whole answer within {self._bounds.seconds:g} seconds") from None
        except httpx2.TimeoutException as error:
            raise LateError(f"no answer within {self._timeout:g} seconds ({type(error).__name__})") from None
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, UnicodeError) as error:
            raise LastingError(f"the address is not a valid one: {error}") from None
        except httpx2.TransportError as error:
            if _is_of_tls(error):
                raise LastingError(
                    f"no trusted connection ({error}); give an address that begins with http:// if it speaks no https, "
                    "or name the file of its certificate's authority in the environment variable SSL_CERT_FILE"
                ) from None
            raise PassingError(f"{type(error).__name__}: {error}".removesuffix(": ")) from None

    async def _send(self, method: str, url: str, json: Any, **content: Any) -> Reply:
        async with self._client.stream(method, url, json=json, **content) as response:
            return Reply(response.status_code, response.headers, await self._read(response))

    async def _read(self, response: httpx2.Response) -> bytes:
        encoding = response.headers.get("content-encoding", "").strip().lower()
        if encoding in _PACKED:  # some servers name the character set here
            raise PassingError(f"the answer is packed in a way that was not asked for ({encoding!r})")
        chunks, n_bytes = [], 0
        async for chunk in response.aiter_raw():
            chunks.append(chunk)
            n_bytes += len(chunk)
            if n_bytes > self._bounds.most_bytes:
                raise LastingError(f"the answer has more than {self._bounds.most_bytes:,} bytes, which are not read")
        return b"".join(chunks)


@cache
def _trusted(file: str | None, folder: str | None) -> ssl.SSLContext:
    """Whom connections trust, by two variables of the environment; reading the certificates takes 30 ms."""
    return httpx2.create_ssl_context()


def _is_of_tls(error: BaseException) -> bool:
    """Whether a connection failed because one side does not use TLS, or its certificate is not trusted."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError) and not isinstance(cause, ssl.SSLEOFError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False
