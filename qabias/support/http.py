"""HTTP with bounds: the other end decides neither how much is read nor how long it takes."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import ssl
import urllib.request
import zlib
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple

import httpx2

from qabias.support.address import is_address, without_secrets
from qabias.support.waiting import wait_for

REDIRECTS = (301, 302, 303, 307, 308)

_HEADERS = {"Accept-Encoding": "gzip"}
# The length of a body that has more digits is not made a number.
_MOST_DIGITS = 18
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
_PACKED = ("gzip", "x-gzip", "deflate")
_PACKED_OTHERWISE = ("br", "zstd", "compress", "x-compress")


# Below this level they log whole addresses, with the user's password and what a redirect holds.
for _name in ("httpx2", "httpcore2"):
    logging.getLogger(_name).setLevel(logging.WARNING)


class PassingError(Exception):
    """The exchange failed, and the next one may not: no connection, no reply in time, a broken or short body."""


class LateError(PassingError):
    """There was no reply in time."""


class LastingError(Exception):
    """The exchange failed, and the next one would: no address, no trust, a body that is too large."""


class Reply(NamedTuple):
    """What came back."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class Bounds(NamedTuple):
    """How much is read, and how long it may take."""

    most_bytes: int
    seconds: float


def check_proxies() -> None:
    """Refuse proxies of the environment that cannot be used; a client prepares them all."""
    proxies = urllib.request.getproxies()
    if "*" in map(str.strip, proxies.get("no", "").split(",")):
        return  # the client uses none
    for name in ("http", "https", "all"):
        address = proxies.get(name, "")
        address = address if "://" in address or not address else f"http://{address}"
        is_socks = address.startswith("socks") and importlib.util.find_spec("socksio") is not None
        if address and not is_socks and not is_address(address):
            raise LastingError(
                f"the proxy of the variable {name}_proxy, {without_secrets(address)[:200]!r}, cannot be used; write it "
                "as http://HOST:PORT (one of SOCKS needs the Python package socksio), or unset the variable"
            )


class HttpClient:
    """Sends requests; several threads may share it. Use it as a context manager."""

    def __init__(
        self, bounds: Bounds, *, timeout: float, connections: int = 1, headers: Mapping[str, str] | None = None
    ) -> None:
        check_proxies()
        self._bounds = bounds
        self._timeout = timeout
        try:
            self._client = httpx2.AsyncClient(
                headers={**_HEADERS, **(headers or {})},
                timeout=timeout,
                limits=httpx2.Limits(max_connections=connections, max_keepalive_connections=connections),
            )
        except OSError as error:  # of the certificates, which are read here
            raise LastingError(
                f"cannot read the certificates that the variable SSL_CERT_FILE or SSL_CERT_DIR names: {error}"
            ) from None

    def __enter__(self) -> HttpClient:
        return self

    def __exit__(self, *_: object) -> None:
        wait_for(self._client.aclose())

    def send(self, method: str, url: str, json: Any = None) -> Reply:
        """Send a request and read the whole reply; redirects are not followed."""
        try:
            return wait_for(asyncio.wait_for(self._send(method, url, json), self._bounds.seconds))
        except (asyncio.TimeoutError, TimeoutError):
            raise LateError(f"no whole answer within {self._bounds.seconds:g} seconds") from None
        except httpx2.TimeoutException as error:
            raise LateError(f"no answer within {self._timeout:g} seconds ({type(error).__name__})") from None
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, UnicodeError) as error:
            raise LastingError(f"the address is not a valid one: {error}") from None
        except httpx2.TransportError as error:
            distrust = _distrust(error)
            if distrust:
                raise LastingError(distrust) from None
            if _TLS_ALERT in str(error):
                raise LastingError("it speaks https; give an address that begins with https://") from None
            raise PassingError(f"{type(error).__name__}: {error}") from None

    async def _send(self, method: str, url: str, json: Any) -> Reply:
        async with self._client.stream(method, url, json=json) as response:
            return Reply(response.status_code, response.headers, await self._read(response))

    async def _read(self, response: httpx2.Response) -> bytes:
        most = self._bounds.most_bytes
        announced = response.headers.get("content-length", "")
        if announced.isdecimal() and (len(announced) > _MOST_DIGITS or int(announced) > most):
            raise LastingError(
                f"the answer announces {announced[:_MOST_DIGITS]} bytes, and more than {most:,} are not read"
            )
        chunks, n_bytes = [], 0
        async for chunk in _unpacked(response, most):
            chunks.append(chunk)
            n_bytes += len(chunk)
            _check_size(n_bytes, most)
        return b"".join(chunks)


def _check_size(n_bytes: int, most: int) -> None:
    if n_bytes > most:
        raise LastingError(f"the answer has more than {most:,} bytes, which are not read")


async def _unpacked(response: httpx2.Response, most: int) -> AsyncIterator[bytes]:
    """The chunks of a body; one that unpacks to more than `most` bytes ends with a chunk of a byte more."""
    encoding = response.headers.get("content-encoding", "").strip().lower()
    chunks = _counted(response, most)
    if encoding in _PACKED_OTHERWISE:
        raise PassingError(f"the answer is packed in a way that was not asked for ({encoding!r})")
    if encoding not in _PACKED:  # some servers name the character set here, or nothing
        async for chunk in chunks:
            yield chunk
        return
    unpacker = zlib.decompressobj(_GZIP_OR_ZLIB)
    async for chunk in chunks:
        if unpacker.eof:  # what follows is read, so that the connection can be used again, and belongs to nothing
            continue
        try:
            yield unpacker.decompress(chunk, most + 1)
        except zlib.error as error:
            raise PassingError(f"the answer is packed and broken: {error}") from None
    if not unpacker.eof:
        raise PassingError("the answer is packed and was cut off")


async def _counted(response: httpx2.Response, most: int) -> AsyncIterator[bytes]:
    """The chunks of a body as they are sent, `most` bytes at most; says how many came before a connection was cut."""
    n_bytes = 0
    try:
        async for chunk in response.aiter_raw():
            n_bytes += len(chunk)
            _check_size(n_bytes, most)
            yield chunk
    except (httpx2.NetworkError, httpx2.ProtocolError) as error:
        announced = response.headers.get("content-length", "")
        more = f", {int(announced) - n_bytes} more were announced" if announced.isdecimal() else ""
        raise PassingError(f"the answer was cut off after {n_bytes} bytes{more} ({type(error).__name__})") from None


def _distrust(error: BaseException) -> str:
    """Why a connection is not to be trusted, or speaks another language; "" where that was not the failure."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return (
                f"its certificate is not trusted ({cause.verify_message or cause.reason}); have it trusted by this "
                "machine, or name the file of its authority in the environment variable SSL_CERT_FILE"
            )
        if isinstance(cause, ssl.SSLError) and cause.reason in _PLAIN:
            return "it does not speak https; give an address that begins with http://, if the network is to be trusted"
        cause = cause.__cause__ or cause.__context__
    return ""


# The first bytes with which TLS refuses a request in plain text, as the parser of status lines shows them.
_TLS_ALERT = r"bytearray(b'\x15\x03"

# What OpenSSL says of an answer in plain text, by version.
_PLAIN = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG", "UNKNOWN_PROTOCOL")
