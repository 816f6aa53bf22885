"""Worker processes."""

import multiprocessing
import os
import signal
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor
from typing import Any

__all__ = ["worker_pool"]


def worker_pool(jobs: int | None = None, start: Callable[..., None] | None = None, *given: Any) -> Executor:
    """
    An executor of *jobs* processes (default: all cores), each prepared by ``start(*given)``.

    Workers are new processes, not forks: a fork would share the compiled kernels' engine and the locks of our threads. An
    interrupt from the keyboard is the parent's business alone.
    """
    return ProcessPoolExecutor(jobs or os.cpu_count(), multiprocessing.get_context("spawn"), _begin, (start, given))


def _begin(start: Callable[..., None] | None, given: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if start is not None:
        start(*given)
