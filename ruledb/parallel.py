"""Worker processes."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

__all__ = ["in_order", "worker_pool"]

Task = TypeVar("Task")
Result = TypeVar("Result")


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
        for child in multiprocessing.active_children():
            child.kill()
        pool.shutdown(wait=False)
        raise
    pool.shutdown()


def in_order(pool: Executor, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
    """
    Results of *function* on *tasks*, in order. Unlike the executor's own `map`, nothing is cancelled where the caller stops
    early: a pool whose workers were killed stumbles over futures that are cancelled.
    """
    for future in [pool.submit(function, task) for task in tasks]:
        yield future.result()


def _begin(start: Callable[..., None] | None, given: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if start is not None:
        start(*given)
