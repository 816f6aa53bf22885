"""Windows as terms: compose the semantics of a sequence of instructions over a symbolic state."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from pysmt.environment import Environment
from pysmt.fnode import FNode

from ruledb.machine.constant import Constant, Expression, Symbol
from ruledb.machine.instruction import Imm, Instruction, Mem, Operand, registers_of
from ruledb.machine.registers import FLAG_BIT, RSP, Register, lane_mask, written_mask
from ruledb.semantics.bitwise import lowest_bit
from ruledb.semantics.forms import Bound, UnmodelledForm, bind
from ruledb.semantics.memory import Access, Kind, LoadModel, free_loads
from ruledb.semantics.terms import Effect, Output, Terms

__all__ = [
    "IMAGE", "State", "UnmodelledForm", "constant_term", "flag_term", "initial_state", "reads_and_writes", "register_term", "run",
]  # fmt: skip


IMAGE = "image"
"""The symbol for where the program is loaded: what a rip-relative address is relative to. Nothing can be known of it."""


@dataclass(frozen=True, slots=True)
class State:
    """
    A symbolic machine state: family → BV64 term, flag name → BV1 term.

    What a mapping lacks is an input: the symbols ``r<family>`` and ``CF`` … *defined* maps a family or flag name to
    the BV1 condition under which the manual defines it; what it lacks is always defined. A register that is undefined only in
    part (`shld r16`) has no entry either: its value holds undefined symbols, so it never equals anything else.
    *n_undefined* counts the undefined symbols so far, so that a second `run` draws fresh ones. *accesses* are those to memory, and
    divisions, in order; *taken* is whether a closing jump is taken.
    """

    registers: Mapping[int, FNode] = field(default_factory=dict)
    flags: Mapping[str, FNode] = field(default_factory=dict)
    defined: Mapping[int | str, FNode] = field(default_factory=dict)
    n_undefined: int = 0
    accesses: tuple[Access, ...] = ()
    taken: FNode | None = None


def initial_state(_t: Terms) -> State:
    """The state in which every register and flag is an input."""
    return State()


def register_term(t: Terms, state: State, family: int) -> FNode:
    """The BV64 value of a family in *state*."""
    value = state.registers.get(family)
    return t.symbol(f"r{family}", 64) if value is None else value


def flag_term(t: Terms, state: State, name: str) -> FNode:
    """The BV1 value of a flag in *state*."""
    value = state.flags.get(name)
    return t.symbol(name, 1) if value is None else value


def constant_term(t: Terms, constant: Constant) -> FNode:
    """
    The BV64 term of *constant*, where symbol i is the variable ``c<i>``.

    ``log2`` of what is no power of two is the index of its lowest 1: guards keep such values out.
    """
    match constant:
        case int():
            return t.const(constant, 64)
        case Symbol(index):
            return t.symbol(f"c{index}", 64)
        case Expression(name, args):
            terms = [constant_term(t, a) for a in args]
    match name:
        case "-":
            return t.neg(*terms)
        case "~":
            return t.not_(*terms)
        case "log2":
            return lowest_bit(t, *terms)
        case "+":
            return t.add(*terms)
        case "*":
            return t.mul(*terms)
        case "&":
            return t.and_(*terms)
        case "|":
            return t.or_(*terms)
        case "^":
            return t.xor(*terms)
        case "<<":
            return t.shl(terms[0], t.and_(terms[1], t.const(63, 64)))
    raise AssertionError(f"constant operation {name}: no term")


def _address(t: Terms, state: State, mem: Mem) -> FNode:
    if mem.rip:
        return t.add(t.symbol(IMAGE, 64), constant_term(t, mem.displacement))
    address = t.const(0, 64) if mem.base is None else register_term(t, state, mem.base.family)
    if mem.index is not None:
        index = register_term(t, state, mem.index.family)
        address = t.add(address, t.shl(index, t.const(mem.scale.bit_length() - 1, 64)))
    return t.add(address, constant_term(t, mem.displacement))


def _read(t: Terms, state: State, operand: Operand, width: int) -> FNode:
    match operand:
        case Register(family, bits, high):
            low = 8 if high else 0
            return t.extract(register_term(t, state, family), low + bits - 1, low)
        case Imm(value):
            return t.extract(constant_term(t, value), width - 1, 0)
        case Mem():
            return _address(t, state, operand)
    raise AssertionError(operand)


def _accesses(bound: Bound) -> list[Operand]:
    """The memory operands of *bound* that are accessed, not only computed."""
    return [o for slot, o in zip(bound.form.slots, bound.operands, strict=True) if isinstance(o, Mem) and slot.kinds != ("mem",)]


def _effect(t: Terms, state: State, bound: Bound, instruction: Instruction, memory: LoadModel) -> tuple[Effect, tuple[Access, ...]]:
    """The effect, and the loads that it came from."""
    form, accessed = bound.form, _accesses(bound)
    loads: tuple[Access, ...] = ()
    operands = []
    for slot, operand, width in zip(form.slots, bound.operands, bound.widths, strict=True):
        if slot.reads:
            value = _read(t, state, operand, width)
            if operand in accessed:
                loaded = memory(t, state.accesses + loads, value, width // 8)
                loads, value = (*loads, Access(Kind.LOAD, value, loaded, register_term(t, state, RSP))), loaded
            operands.append(value)
    effect = form.semantics(t, *operands, *(flag_term(t, state, name) for name in form.reads))
    may_be_undefined = {name for name, output in effect.flags.items() if output.defined is not None}
    if effect.flags.keys() != form.writes or not may_be_undefined <= form.undefined or len(effect.results) != len(_written(bound)):
        raise AssertionError(f"{instruction}: the effect and the form's line differ in what they write or leave undefined")
    if effect.division is not None:
        kind = Kind.SIGNED_DIVISION if effect.division.is_signed else Kind.DIVISION
        loads = (*loads, Access(kind, None, effect.division.operands))
    return effect, loads


def _written(bound: Bound) -> list[Register | Mem]:
    pairs = zip(bound.form.slots, bound.operands, strict=True)
    return [operand for slot, operand in pairs if slot.writes and isinstance(operand, Register | Mem)]


class _Writer:
    """The state while a sequence runs; `state` is its value."""

    def __init__(self, t: Terms, state: State, side: str, *, is_pattern: bool) -> None:
        self.t, self.side, self.is_pattern = t, side, is_pattern
        self.state = replace(state, registers=dict(state.registers), flags=dict(state.flags), defined=dict(state.defined))

    def _undefined(self, width: int) -> FNode:
        number = self.state.n_undefined
        self.state = replace(self.state, n_undefined=number + 1)
        return self.t.undefined(self.side, number, width)

    def _conditions(self, output: Output) -> tuple[FNode, FNode]:
        """When the location is written, and when the new value is defined."""
        t, always = self.t, self.t.const(1, 1)
        written = always if output.written is None else output.written
        defined = always if output.defined is None else output.defined
        if output.specified is None:
            return written, defined
        return (t.and_(written, output.specified), defined) if self.is_pattern else (written, t.and_(defined, output.specified))

    def _store(self, key: int | str, old: FNode, new: FNode, written: FNode, defined: FNode) -> None:
        t, state = self.t, self.state
        value = t.ite(written, new, old)
        now_defined = t.ite(written, defined, state.defined.get(key, t.const(1, 1)))
        registers, flags, conditions = dict(state.registers), dict(state.flags), dict(state.defined)
        if isinstance(key, int):
            registers[key] = value
        else:
            flags[key] = value
        conditions.pop(key, None)
        if now_defined is not t.const(1, 1):
            conditions[key] = now_defined
        self.state = replace(state, registers=registers, flags=flags, defined=conditions)

    def flag(self, name: str, output: Output) -> None:
        t = self.t
        written, defined = self._conditions(output)
        if written is t.const(0, 1):
            return
        value = output.value if defined is t.const(1, 1) else t.ite(defined, output.value, self._undefined(1))
        self._store(name, flag_term(t, self.state, name), value, written, defined)

    def register(self, register: Register, output: Output) -> None:
        t, one = self.t, self.t.const(1, 1)
        written, defined = self._conditions(output)
        old = register_term(t, self.state, register.family)
        value = output.value
        if register.width < 32:
            if defined is not one:
                value = t.ite(defined, value, self._undefined(register.width))
            self._store(register.family, old, _merged(t, old, register, value), written, one)
            return
        value = t.zext(value, 64)
        if defined is not one:
            value = t.ite(defined, value, self._undefined(64))
        self._store(register.family, old, value, written, defined)

    def memory(self, address: FNode, output: Output) -> None:
        written, defined = self._conditions(output)
        assert written is self.t.const(1, 1), "every store of the table happens always"
        value = (
            output.value if defined is self.t.const(1, 1) else self.t.ite(defined, output.value, self._undefined(output.value.bv_width()))
        )
        self.access(Access(Kind.STORE, address, value, register_term(self.t, self.state, RSP)))

    def access(self, *more: Access) -> None:
        self.state = replace(self.state, accesses=(*self.state.accesses, *more))

    def taken(self, condition: FNode) -> None:
        self.state = replace(self.state, taken=condition)


def _merged(t: Terms, old: FNode, register: Register, value: FNode) -> FNode:
    """*old* with its low 8 or 16 bits, or bits 15..8, replaced. SDM vol. 1, 3.4.1.1."""
    if register.high:
        return t.concat(t.extract(old, 63, 16), value, t.extract(old, 7, 0))
    return t.concat(t.extract(old, 63, register.width), value)


def run(
    t: Terms,
    instructions: Sequence[Instruction],
    state: State,
    *,
    side: str = "left",
    is_pattern: bool = True,
    memory: LoadModel | None = None,
) -> State:
    """
    The state after *instructions*, started in *state*.

    Undefined values are the fresh symbols ``<side>!undef<n>_<width>``. *is_pattern* tells which reading the scans get whose
    source is 0: in a pattern the destination stays, in a replacement it is undefined. Loads take their values from *memory*; without
    it, accesses, divisions and jumps are refused.

    Raises:
        UnmodelledForm: An instruction has no row in the table of forms, or does more than the caller has a model of.

    """
    writer = _Writer(t, state, side, is_pattern=is_pattern)
    for instruction in instructions:
        bound = bind(instruction)
        before = writer.state
        if before.taken is not None:
            raise UnmodelledForm(f"{instruction}: behind a jump; a jump is modelled at a window's end only")
        effect, accesses = _effect(t, before, bound, instruction, memory or free_loads)
        stores = [o for o in _written(bound) if isinstance(o, Mem)]
        if memory is None and (accesses or stores or effect.taken is not None):
            raise UnmodelledForm(f"{instruction}: memory, division or branch, where registers and flags alone are modelled")
        writer.access(*accesses)
        # Last first: where two operands are one register, the first one stays (SDM: xadd, mulx, pop rsp).
        for operand, output in reversed(list(zip(_written(bound), effect.results, strict=True))):
            if isinstance(operand, Mem):
                writer.memory(_address(t, before, operand), output)
            else:
                writer.register(operand, output)
        for name, output in effect.flags.items():
            writer.flag(name, output)
        if effect.taken is not None:
            writer.taken(effect.taken)
    return writer.state


@lru_cache(maxsize=1 << 16)
def reads_and_writes(instruction: Instruction) -> tuple[int, int, int]:
    """
    Location masks of what *instruction* reads, may write, and must write (kills).

    Read are the operands that its terms depend on (``xor eax, eax`` reads nothing). Killed is only what every execution
    overwrites with a defined value: the flags of a shift by cl, the destination of a scan and undefined flags are
    not. An old value that merely stays in place is not read.

    Raises:
        UnmodelledForm: The instruction has no row in `ruledb.semantics.forms`.

    """
    t = Terms(Environment())
    bound = bind(instruction)
    effect, accesses = _effect(t, State(), bound, instruction, free_loads)
    always, never = t.const(1, 1), t.const(0, 1)
    results = list(zip(_written(bound), effect.results, strict=True))
    written = [(written_mask(r), o) for r, o in results if isinstance(r, Register)]
    written += [(FLAG_BIT[name], o) for name, o in effect.flags.items()]
    may = must = 0
    names: set[str] = set()
    for mask, output in written:
        conditions = [c for c in (output.written, output.defined, output.specified) if c is not None]
        if output.written is never:
            continue
        may |= mask
        must |= mask if all(c is always for c in conditions) else 0
        names.update(*(t.names(term) for term in (output.value, *conditions)))
    beyond = [term for a in accesses for term in (a.address, a.value) if term is not None]
    beyond += [term for r, o in results if isinstance(r, Mem) for term in (_address(t, State(), r), o.value)]
    names.update(*(t.names(term) for term in (*beyond, *filter(None, (effect.taken,)))))
    return _read_mask(bound, names), may, must


def _read_mask(bound: Bound, names: set[str]) -> int:
    """Mask of the operands and flags that are read and whose symbol is among *names*."""
    mask = sum(FLAG_BIT[name] for name in bound.form.reads if name in names)
    for slot, operand in zip(bound.form.slots, bound.operands, strict=True):
        if slot.reads or isinstance(operand, Mem):
            for register in registers_of(operand):
                mask |= lane_mask(register) if f"r{register.family}" in names else 0
    return mask
