"""
Bitwuzla as a pySMT solver (QF_BV and arrays of bit-vectors); pySMT 0.9.6 has no back end for it.

`register` adds it to an environment's factory under the name ``bitwuzla``. Only bit-vector, array and Boolean operators
convert; anything else raises.
"""

from typing import Any

import bitwuzla as bz
import pysmt.operators as op
from pysmt.decorators import clear_pending_pop
from pysmt.exceptions import ConvertExpressionError, SolverReturnedUnknownResultError
from pysmt.logics import QF_ABV, QF_AUFBV, QF_BV, QF_UFBV
from pysmt.solvers.solver import Converter, IncrementalTrackingSolver, SolverOptions
from pysmt.walkers import DagWalker

__all__ = ["BitwuzlaSolver", "register"]

_KINDS = {
    op.AND: bz.Kind.AND,
    op.OR: bz.Kind.OR,
    op.NOT: bz.Kind.NOT,
    op.IMPLIES: bz.Kind.IMPLIES,
    op.IFF: bz.Kind.EQUAL,
    op.EQUALS: bz.Kind.EQUAL,
    op.ITE: bz.Kind.ITE,
    op.BV_NOT: bz.Kind.BV_NOT,
    op.BV_AND: bz.Kind.BV_AND,
    op.BV_OR: bz.Kind.BV_OR,
    op.BV_XOR: bz.Kind.BV_XOR,
    op.BV_CONCAT: bz.Kind.BV_CONCAT,
    op.BV_ULT: bz.Kind.BV_ULT,
    op.BV_ULE: bz.Kind.BV_ULE,
    op.BV_SLT: bz.Kind.BV_SLT,
    op.BV_SLE: bz.Kind.BV_SLE,
    op.BV_NEG: bz.Kind.BV_NEG,
    op.BV_ADD: bz.Kind.BV_ADD,
    op.BV_SUB: bz.Kind.BV_SUB,
    op.BV_MUL: bz.Kind.BV_MUL,
    op.BV_UDIV: bz.Kind.BV_UDIV,
    op.BV_UREM: bz.Kind.BV_UREM,
    op.BV_SDIV: bz.Kind.BV_SDIV,
    op.BV_SREM: bz.Kind.BV_SREM,
    op.BV_LSHL: bz.Kind.BV_SHL,
    op.BV_LSHR: bz.Kind.BV_SHR,
    op.BV_ASHR: bz.Kind.BV_ASHR,
    op.BV_COMP: bz.Kind.BV_COMP,
    op.ARRAY_SELECT: bz.Kind.ARRAY_SELECT,
    op.ARRAY_STORE: bz.Kind.ARRAY_STORE,
}


class BitwuzlaConverter(Converter, DagWalker):  # type: ignore[misc]  # pySMT has no types
    """Terms to Bitwuzla's; one term manager lives as long as its environment, so that equal terms convert once."""

    def __init__(self, environment: Any) -> None:
        DagWalker.__init__(self, environment)
        self.manager = bz.TermManager()
        self.symbols: dict[Any, Any] = {}

    def convert(self, formula: Any) -> Any:
        """The Bitwuzla term of *formula*."""
        try:
            return self.walk(formula)
        except BaseException:
            self.stack.clear()  # else the next walk goes on with what failed
            raise

    def back(self, expr: Any) -> Any:
        """Terms do not convert back: values are read bit by bit."""
        raise ConvertExpressionError(f"{expr}: Bitwuzla terms are not converted back")

    def sort(self, kind: Any) -> Any:
        """The Bitwuzla sort of a pySMT type."""
        if kind.is_bool_type():
            return self.manager.mk_bool_sort()
        if kind.is_array_type():
            return self.manager.mk_array_sort(self.sort(kind.index_type), self.sort(kind.elem_type))
        if kind.is_bv_type():
            return self.manager.mk_bv_sort(kind.width)
        raise ConvertExpressionError(f"type {kind}: expected Boolean, bit-vector or array")

    def walk_symbol(self, formula: Any, **_: Any) -> Any:
        """A free constant, the same one every time."""
        if formula not in self.symbols:
            self.symbols[formula] = self.manager.mk_const(self.sort(formula.symbol_type()), formula.symbol_name())
        return self.symbols[formula]

    def walk_bool_constant(self, formula: Any, **_: Any) -> Any:
        """True or false."""
        return self.manager.mk_true() if formula.constant_value() else self.manager.mk_false()

    def walk_bv_constant(self, formula: Any, **_: Any) -> Any:
        """A bit-vector value."""
        return self.manager.mk_bv_value(self.manager.mk_bv_sort(formula.bv_width()), formula.constant_value())

    def walk_bv_extract(self, formula: Any, args: Any, **_: Any) -> Any:
        """Bits end..start of the argument."""
        return self.manager.mk_term(bz.Kind.BV_EXTRACT, [args[0]], [formula.bv_extract_end(), formula.bv_extract_start()])

    def walk_bv_zext(self, formula: Any, args: Any, **_: Any) -> Any:
        """Zero extension."""
        return self.manager.mk_term(bz.Kind.BV_ZERO_EXTEND, [args[0]], [formula.bv_extend_step()])

    def walk_bv_sext(self, formula: Any, args: Any, **_: Any) -> Any:
        """Sign extension."""
        return self.manager.mk_term(bz.Kind.BV_SIGN_EXTEND, [args[0]], [formula.bv_extend_step()])

    def _walk_operator(self, formula: Any, args: Any, **_: Any) -> Any:
        return self.manager.mk_term(_KINDS[formula.node_type()], list(args))


BitwuzlaConverter.set_handler(BitwuzlaConverter._walk_operator, *_KINDS)  # noqa: SLF001  # the class's own table


class BitwuzlaSolver(IncrementalTrackingSolver):  # type: ignore[misc]  # pySMT has no types
    """One Bitwuzla instance. ``solver_options={"time-limit-per": milliseconds}`` bounds each `solve`."""

    LOGICS = [QF_BV, QF_UFBV, QF_ABV, QF_AUFBV]  # noqa: RUF012  # pySMT reads a class attribute
    OptionsClass = SolverOptions

    def __init__(self, environment: Any, logic: Any, **options: Any) -> None:
        super().__init__(environment, logic, **options)
        if not hasattr(environment, "bitwuzla_converter"):
            environment.bitwuzla_converter = BitwuzlaConverter(environment)
        self.converter = environment.bitwuzla_converter
        chosen = bz.Options()
        chosen.set("produce-models", True)
        for name, value in self.options.solver_options.items():
            chosen.set(name, value)
        self.solver = bz.Bitwuzla(self.converter.manager, chosen)

    def _reset_assertions(self) -> None:
        raise NotImplementedError("a query gets a fresh solver; assertions are never reset")

    @clear_pending_pop  # type: ignore[untyped-decorator]  # pySMT has no types
    def _add_assertion(self, formula: Any, named: Any = None) -> Any:
        del named
        self._assert_is_boolean(formula)
        term = self.converter.convert(formula)
        self.solver.assert_formula(term)
        return term

    @clear_pending_pop  # type: ignore[untyped-decorator]  # pySMT has no types
    def _solve(self, assumptions: Any = None) -> bool:
        assumed = [self.converter.convert(a) for a in assumptions or ()]
        result = self.solver.check_sat(*assumed)
        if result == bz.Result.UNKNOWN:
            raise SolverReturnedUnknownResultError
        return bool(result == bz.Result.SAT)

    @clear_pending_pop  # type: ignore[untyped-decorator]  # pySMT has no types
    def _push(self, levels: int = 1) -> None:
        self.solver.push(levels)

    @clear_pending_pop  # type: ignore[untyped-decorator]  # pySMT has no types
    def _pop(self, levels: int = 1) -> None:
        self.solver.pop(levels)

    def get_value(self, formula: Any) -> Any:
        """The value of a Boolean or bit-vector term in the last model."""
        value = self.solver.get_value(self.converter.convert(formula))
        if value.sort().is_bool():
            return self.environment.formula_manager.Bool(value.is_true())
        bits = value.value(2)
        return self.environment.formula_manager.BV(int(bits, 2), len(bits))

    def print_model(self, name_filter: Any = None) -> None:
        """Print the values of all symbols that *name_filter* admits."""
        for symbol in self.converter.symbols:
            if name_filter is None or name_filter(symbol):
                print(symbol.symbol_name(), "=", self.get_value(symbol))

    def _exit(self) -> None:
        del self.solver


def register(environment: Any) -> None:
    """Make ``bitwuzla`` a solver of *environment*."""
    environment.factory._all_solvers["bitwuzla"] = BitwuzlaSolver  # noqa: SLF001  # pySMT 0.9.6 (pinned) has no public way
