"""Ask one named solver about one formula, within a time limit. Only this module and its plugin know solvers."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from time import perf_counter
from typing import Any

from bitwuzla import BitwuzlaException
from pysmt.environment import Environment
from pysmt.exceptions import NoSolverAvailableError, PysmtException, SolverReturnedUnknownResultError
from pysmt.fnode import FNode
from pysmt.logics import QF_ABV, QF_BV, Logic
from z3 import Z3Exception

from ruledb.proof.bitwuzla_solver import register

__all__ = ["SOLVERS", "Answer", "Sat", "Unknown", "Unsat", "ask", "logic_of", "new_environment", "solver_version"]


@dataclass(frozen=True, slots=True)
class Unsat:
    """No assignment satisfies the formula."""

    ms: float


@dataclass(frozen=True, slots=True)
class Sat:
    """An assignment satisfies the formula: the *values* of the terms that were asked for, Booleans as 0 and 1."""

    ms: float
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Unknown:
    """The solver gave no answer: *reason* says why (``timeout``, or an error's text)."""

    ms: float
    reason: str


Answer = Unsat | Sat | Unknown

SOLVERS = {"bitwuzla": ("bitwuzla", "time-limit-per"), "z3": ("z3-solver", "timeout")}
"""Solver name → (distribution, name of its time limit in milliseconds)."""


def solver_version(name: str) -> str:
    """The version of solver *name*, as its distribution says."""
    return version(SOLVERS[name][0])


def new_environment() -> Environment:
    """A fresh pySMT environment that knows Bitwuzla."""
    environment = Environment()
    register(environment)
    return environment


def logic_of(environment: Environment, formula: FNode) -> Logic:
    """The logic of *formula*: bit-vectors, with arrays where it has some."""
    symbols = environment.fvo.get_free_variables(formula)
    return QF_ABV if any(s.symbol_type().is_array_type() for s in symbols) else QF_BV


def ask(environment: Environment, formula: FNode, terms: Sequence[FNode], name: str, limit_ms: int) -> Answer:
    """
    What solver *name* says of *formula*; the values of *terms* where it is satisfiable.

    Raises:
        ValueError: There is no such solver.

    """
    if name not in SOLVERS:
        raise ValueError(f"solver {name!r}: expected one of {', '.join(SOLVERS)}")
    start = perf_counter()

    def elapsed() -> float:
        return (perf_counter() - start) * 1000

    try:
        logic = logic_of(environment, formula)
        with environment.factory.Solver(name=name, logic=logic, solver_options={SOLVERS[name][1]: limit_ms}) as solver:
            solver.add_assertion(formula)
            if not solver.solve():
                return Unsat(elapsed())
            return Sat(elapsed(), tuple(_value(solver, t) for t in terms))
    except SolverReturnedUnknownResultError:
        return Unknown(elapsed(), "timeout")
    except NoSolverAvailableError:
        return Unknown(elapsed(), f"solver {name} is not installed")
    except (PysmtException, BitwuzlaException, Z3Exception, MemoryError) as problem:
        return Unknown(elapsed(), f"error: {type(problem).__name__}: {problem}")


def _value(solver: Any, term: FNode) -> int:
    return int(solver.get_value(term).constant_value())
