"""Chromium by chromedriver: pages that a server serves, used as people use them."""

import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import contextmanager

DRIVER = shutil.which("chromedriver")
_OPTIONS = ("headless", "no-sandbox", "disable-gpu", "no-first-run", "disable-sync", "disable-background-networking")


class Browser:
    """One window; scripts may use `arguments` and return JSON."""

    def __init__(self, address):
        self._address = address

    def open(self, url):
        """Open an address."""
        self._post("/url", url=url)

    def run(self, script, *arguments):
        """What a script in the page returns."""
        return self._post("/execute/sync", script=script, args=arguments)

    def wait(self, script, *arguments, seconds=240):
        """Wait until a script returns something, and return it."""
        deadline = time.monotonic() + seconds
        while not (found := self.run(script, *arguments)):
            assert time.monotonic() < deadline, self.run("return document.body.innerText")
            time.sleep(0.2)
        return found

    def _post(self, path, **body):
        return _call("POST", f"{self._address}{path}", body)


def _call(method, url, body=None):
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, content, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)["value"]


@contextmanager
def browser(port, profile):
    """A browser with a profile in a folder, driven on a port."""
    driver = subprocess.Popen([DRIVER, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        reach(f"{address}/status", driver)
        options = {"args": [*_OPTIONS, f"user-data-dir={profile}"]}
        asked = {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}}
        session = f"{address}/session/{_call('POST', f'{address}/session', asked)['sessionId']}"
        yield Browser(session)
        _call("DELETE", session)
    finally:
        driver.terminate()
        driver.wait()


def reach(url, process):
    """Wait for a server that a process starts, and return its answer."""
    deadline = time.monotonic() + 240
    while True:
        assert process.poll() is None, f"the server of {url} has ended"
        assert time.monotonic() < deadline
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return answer.read()
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.5)
