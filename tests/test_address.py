"""Addresses as people may see them."""

import pytest

from qabias.support.address import without_secrets


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
