"""Worker processes."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any

__all__ = ["worker_pool"]


@contextmanager
def worker_pool(jobs: int | None = None, start: Callable[..., None] | None = None, *given: Any) -> Iterator[Executor]:
    """
    An executor of *jobs* processes (default: all cores), each prepared by ``start(*given)``.

    Workers are new processes, not forks: a fork would share the compiled kernels' engine and the locks of our threads. An
    interrupt from the keyboard is the parent's business alone. Where the body is left by an exception the workers are killed:
    nothing that they hold is worth waiting for.
    """
    pool = ProcessPoolExecutor(jobs or os.cpu_count(), multiprocessing.get_context("spawn"), _begin, (start, given))
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            child.kill()
        raise
    pool.shutdown()


def _begin(start: Callable[..., None] | None, given: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if start is not None:
        start(*given)
