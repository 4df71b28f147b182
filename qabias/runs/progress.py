"""How far a run is: on a terminal a bar, elsewhere a line a minute."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from tqdm import tqdm

from qabias.support.progress import listening

SECONDS_BETWEEN_LINES = 60.0


class RunProgress:
    """Shows how many examples of a run are answered, how many a second, and how long the others take."""

    def __init__(
        self, name: str, total: int, done: int, stream: TextIO | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._name, self._total, self._before = name, total, done
        self._stream, self._clock = stream, clock
        self._finished = self._shown = done
        self._started = self._told = clock()
        has_bar = stream is not None and stream.isatty()
        self._bar = tqdm(total=total, initial=done, unit="example", desc=name, file=stream) if has_bar else None

    @contextmanager
    def part(self, n_examples: int) -> Iterator[None]:
        """Show how far these examples are, as their scorer tells, and count them at the end."""
        begin = self._finished
        with listening(lambda share: self._show(begin + int(share * n_examples))):
            yield
        self._finished += n_examples
        self._show(self._finished)

    def close(self) -> None:
        """Leave the bar as it stands."""
        if self._bar is not None:
            self._bar.close()

    def _show(self, done: int) -> None:
        self._shown = max(self._shown, done)  # a batch that did not fit in memory is asked again
        if self._bar is not None:
            self._bar.update(self._shown - self._bar.n)
        elif self._stream is not None and self._clock() - self._told >= SECONDS_BETWEEN_LINES:
            self._told = self._clock()
            self._stream.write(self._line())
            self._stream.flush()

    def _line(self) -> str:
        rate = (self._shown - self._before) / (self._told - self._started)
        left = tqdm.format_interval((self._total - self._shown) / rate) if rate else "unknown"
        return f"{self._name}: {self._shown:,} of {self._total:,} examples, {rate:.3g} examples/s, time left {left}\n"
