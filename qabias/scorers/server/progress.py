"""How far the requests of a run are: on a terminal a bar, elsewhere a line at intervals."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tqdm import tqdm

SECONDS_BETWEEN_LINES = 30.0


class Progress:
    """Counts requests, and shows the counts if it is to; threads may share it."""

    def __init__(self) -> None:
        self.is_shown = False
        self.n_answered = self.n_again = self.n_unread = 0
        self._lock = threading.Lock()
        self._bar: tqdm | None = None
        self._told = time.monotonic()

    @contextmanager
    def of(self, n_requests: int) -> Iterator[None]:
        """Show the next requests."""
        if not (self.is_shown and sys.stderr.isatty()):
            yield
            return
        with tqdm(total=n_requests, unit="request", desc="server", leave=False) as self._bar:
            yield
        self._bar = None

    def answered(self) -> None:
        """Count an answer."""
        with self._lock:
            self.n_answered += 1
            if self._bar is not None:
                self._bar.update()
            self._show()

    def sent_again(self) -> None:
        """Count an attempt that failed."""
        with self._lock:
            self.n_again += 1
            self._show()

    def unread(self) -> int:
        """Count an answer without a choice; how many there have been."""
        with self._lock:
            self.n_unread += 1
            self._show()
            return self.n_unread

    def _show(self) -> None:
        if self._bar is not None:
            self._bar.set_postfix(again=self.n_again, unread=self.n_unread, refresh=False)
        elif self.is_shown and time.monotonic() - self._told >= SECONDS_BETWEEN_LINES:
            self._told = time.monotonic()
            sys.stderr.write(
                f"server: {self.n_answered:,} requests answered, {self.n_again:,} sent again, "
                f"{self.n_unread:,} without a choice\n"
            )
