"""Progress of long work on standard error: a bar with rate and remaining time on a terminal, plain lines otherwise."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

__all__ = ["Advance", "stage"]

_EVERY_S = 10.0


class Advance(Protocol):
    """Tells the display of *n* more items, and what to say beside them."""

    def __call__(self, n: int, note: str = "", /) -> None:
        """*n* more items are done."""


def _silent(_n: int, _note: str = "", /) -> None:
    """No display."""


@contextmanager
def stage(name: str, total: int, *, quiet: bool = False) -> Iterator[Advance]:
    """A stage of *total* items; the body calls what it is given."""
    if quiet:
        yield _silent
    elif sys.stderr.isatty():
        columns = (
            TextColumn("{task.description:<10}"),
            BarColumn(24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
        )
        with Progress(*columns, console=Console(stderr=True), transient=False) as progress:
            task = progress.add_task(name, total=total, note="", rate="")
            start, done = monotonic(), 0

            def advance(n: int, note: str = "") -> None:
                nonlocal done
                done += n
                rate = f"{done / max(monotonic() - start, 1e-3):,.0f}/s"
                progress.update(task, advance=n, note=note, rate=rate)

            yield advance
    else:
        yield _plain(name, total)


def _plain(name: str, total: int) -> Advance:
    start = last = monotonic()
    done = 0

    def advance(n: int, note: str = "") -> None:
        nonlocal done, last
        done += n
        now = monotonic()
        if now - last >= _EVERY_S or done >= total > 0:
            last, elapsed = now, max(now - start, 1e-3)
            left = (total - done) * elapsed / done if done else 0.0
            line = f"{name}: {done:,} of {total:,}, {done / elapsed:,.0f}/s, {left:,.0f} s left {note}"
            print(line.rstrip(), file=sys.stderr, flush=True)

    return advance
