"""Proxies and certificates of the environment that cannot be used, and addresses without secrets."""

import sys

import pytest

from qabias.building import sources
from qabias.errors import QabiasError
from qabias.scorers.registry import load_scorer
from qabias.support.address import without_secrets
from qabias.support.http import Bounds, HttpClient, LastingError

VARIABLES = [f"{kind}_proxy" for kind in ("http", "https", "all", "no")]


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def begin():
    with HttpClient(Bounds(1, 1.0), timeout=1.0):
        pass


@pytest.mark.parametrize(
    ("variable", "address"),
    [
        ("http_proxy", "foo://user:hunter2@x:1"),
        ("HTTPS_PROXY", "http://user:hunter2@x:port"),
        ("ALL_PROXY", "socks5://user:hunter2@127.0.0.1:1080"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_told_by_its_variable(monkeypatch, variable, address):
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setenv(variable, address)
    with pytest.raises(LastingError, match=variable.lower()) as error:
        begin()
    assert "hunter2" not in str(error.value)
    monkeypatch.setenv("NO_PROXY", "*")
    begin()
    monkeypatch.delenv("NO_PROXY")
    monkeypatch.setenv(variable, "127.0.0.1:3128")
    begin()


def test_the_scorer_and_the_downloads_say_it_in_one_line(monkeypatch, tmp_path):
    for name in ("QABIAS_UPSTREAM", "QABIAS_OFFLINE", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("QABIAS_CACHE", str(tmp_path))
    monkeypatch.setenv("http_proxy", "foo://x:1")
    with pytest.raises(QabiasError, match=r"^sources: .*http_proxy"):
        sources.fetch("nyu-mll/BBQ", sources.files("nyu-mll/BBQ")[0])
    with pytest.raises(QabiasError, match=r"^server: .*http_proxy"):
        load_scorer("server", "m", scorer_options={"base_url": "http://127.0.0.1:1/v1"}).generate(["q"], ["q"])


def test_certificates_that_cannot_be_read_are_told_by_the_variable(monkeypatch, tmp_path):
    file = tmp_path / "none.pem"
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    for content in (None, "no certificate"):
        if content is not None:
            file.write_text(content, encoding="utf-8")
        with pytest.raises(LastingError, match=r"cannot read the certificates that .* SSL_CERT_FILE"):
            begin()


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://host/x", "http://host/x"),
        ("http://host:80/x?token=hunter2#hunter2", "http://host:80/x"),
        ("http://user:hunter2@host/x", "http://host/x"),
        ("http://user:hun/ter2@host/x", "http://host/x"),
        ("http://user:hun@ter2@host/x", "http://host/x"),
        ("http://user:hun://ter2@host", "http://host"),
        ("HTTPS:/user:hunter2@host/x", "HTTPS:/host/x"),
        ("http:user:hunter2@host", "http:host"),
        ("//user:hunter2@host/x", "//host/x"),
        ("user:hunter2@host", "host"),
        ("user:/hunter2@host", "host"),
        ("socks5://user:hunter2@host:1", "socks5://host:1"),
        ("http://user:hun?ter2@host", "http://..."),
        ("http://user:hun#ter2@host", "http://..."),
        ("http://host/x?token=hun@ter2", "http://..."),
        ("", ""),
    ],
)
def test_an_address_is_shown_without_what_may_be_secret_however_malformed_it_is(url, shown):
    assert without_secrets(url) == shown
