"""
What code costs: two total orders.

* *size*: encoded bytes, then instructions;
* *time*: memory accesses and branches, then cycles on the longest dependency chain, then µops, then bytes.

Latencies and µops are those of recent Intel cores (Ice Lake), rounded up where cores differ.
Source: Intel 64 and IA-32 Architectures Optimization Reference Manual, appendix on latency and throughput.
"""

from collections.abc import Sequence

from ruledb.machine.canonical import fixed_families
from ruledb.machine.codec import encode
from ruledb.machine.instruction import Instruction, Label, Mem, registers_of
from ruledb.machine.registers import RCX, RSP, Register

__all__ = ["Latency", "Size", "Time", "latency_of", "n_accesses", "size_of", "time_of"]

Latency = tuple[int, int]
"""(cycles, µops) of one instruction."""

Size = tuple[int, int]
"""(bytes, instructions)"""

Time = tuple[int, int, int, int]
"""(memory accesses and branches, cycles, µops, bytes)"""

_DEFAULT: Latency = (1, 1)
_BY_MNEMONIC: dict[str, Latency] = {
    "imul": (3, 1),
    "mul": (4, 2),
    "div": (26, 10),
    "idiv": (26, 10),
    "xchg": (2, 3),
    "bsf": (3, 1),
    "bsr": (3, 1),
    "shld": (3, 1),
    "shrd": (3, 1),
    "cwd": (1, 2),
    "nop": (0, 1),
    "adc": (1, 1),
    "cmovbe": (2, 2),
    "cmova": (2, 2),
    "setbe": (2, 2),
    "seta": (2, 2),
    "popcnt": (3, 1),
    "lzcnt": (3, 1),
    "tzcnt": (3, 1),
    "pdep": (3, 1),
    "pext": (3, 1),
    "mulx": (4, 2),
    "bextr": (2, 2),
    "xadd": (2, 3),
    "cmpxchg": (5, 5),
    "leave": (1, 2),
}
_SHIFT_BY_CL: Latency = (2, 3)
_LEA_THREE_PARTS: Latency = (3, 1)
_BSWAP_64: Latency = (2, 2)
_CL = Register(RCX, 8)


def latency_of(instruction: Instruction) -> Latency:
    """(cycles, µops) of *instruction*, memory accesses apart."""
    operands = instruction.operands
    if instruction.mnemonic in ("shl", "shr", "sar", "rol", "ror") and operands[-1] == _CL:
        return _SHIFT_BY_CL
    if instruction.mnemonic == "lea":
        address = operands[1]
        assert isinstance(address, Mem)
        three = address.base is not None and address.index is not None and address.displacement != 0
        return _LEA_THREE_PARTS if three else _DEFAULT
    if instruction.mnemonic == "bswap" and operands[0] == Register(operands[0].family, 64):  # type: ignore[union-attr]  # a register
        return _BSWAP_64
    return _BY_MNEMONIC.get(instruction.mnemonic, _DEFAULT)


def size_of(instructions: Sequence[Instruction]) -> Size:
    """
    The size cost of concrete *instructions*.

    Raises:
        CodecError: An instruction has no encoding.

    """
    return sum(map(_n_bytes, instructions)), len(instructions)


_SHORT_JUMP = 2
"""Bytes of a jump to a place near by, as a closing jump's target is taken to be."""


def _n_bytes(instruction: Instruction) -> int:
    return _SHORT_JUMP if any(isinstance(o, Label) for o in instruction.operands) else len(encode(instruction))


def n_accesses(instruction: Instruction) -> int:
    """Loads and stores of *instruction*: a memory operand that is read and written counts twice."""
    mnemonic, operands = instruction.mnemonic, instruction.operands
    found = _STACK_ACCESSES.get(mnemonic, 0)
    for i, operand in enumerate(operands):
        if isinstance(operand, Mem) and operand.width > 0 and mnemonic not in ("lea", "nop"):
            is_once = i > 0 or mnemonic in _ONE_ACCESS or mnemonic.startswith("set")
            found += 1 if is_once else 2
    return found


_STACK_ACCESSES = {"push": 1, "pop": 1, "leave": 1}
_ONE_ACCESS = frozenset({"mov", "movbe", "cmp", "test", "bt", "push", "pop", "mul", "imul", "div", "idiv"})
"""Mnemonics that only read, or only write, a memory operand that comes first."""

_FLAGS = -1
"""Stands for all flags in the dependency chain."""


def time_of(instructions: Sequence[Instruction], n_bytes: int) -> Time:
    """
    The time cost of *instructions* of *n_bytes* bytes.

    The chain is an estimate: registers depend by family, flags as one; what only writes its destination starts a new chain.
    """
    ready: dict[int, int] = {}
    longest = accesses = uops = 0
    for instruction in instructions:
        cycles, n_uops = latency_of(instruction)
        accesses += n_accesses(instruction) + instruction.mnemonic.startswith("j")
        reads, writes = _chain(instruction)
        end = max((ready.get(f, 0) for f in reads), default=0) + cycles
        ready |= dict.fromkeys(writes, end)
        longest, uops = max(longest, end), uops + n_uops
    return accesses, longest, uops, n_bytes


_EXTENDED = frozenset({"andn", "bextr", "bzhi", "blsi", "blsr", "blsmsk", "pdep", "pext", "shlx", "shrx", "sarx", "rorx", "mulx", "movbe"})
_FLAGLESS = frozenset({"pdep", "pext", "shlx", "shrx", "sarx", "rorx", "mulx", "movbe", "push", "pop", "leave"})
_WRITES_ONLY = frozenset({"mov", "lea", "movzx", "movsx", "movsxd", "popcnt", "lzcnt", "tzcnt", "pop"}) | _EXTENDED
_COMPARES = frozenset({"cmp", "test", "bt", "push"})
_NO_FLAGS = frozenset({"mov", "lea", "movzx", "movsx", "movsxd", "not", "bswap", "xchg", "nop", "cwde", "cdqe", "cdq", "cqo", "cbw", "cwd"})


def _chain(instruction: Instruction) -> tuple[set[int], set[int]]:
    """Families (and `_FLAGS`) that a result waits for, and those that carry a result."""
    mnemonic, operands = instruction.mnemonic, instruction.operands
    implicit = set(fixed_families((instruction,)) - {RSP})
    reads = {r.family for o in operands for r in registers_of(o)} | implicit
    destination = operands[0] if operands and isinstance(operands[0], Register) else None
    writes = set(implicit) if mnemonic in ("mul", "cdq", "cqo", "cwd", "cwde", "cdqe", "cbw") or len(operands) == 1 else set()
    if destination is not None and mnemonic not in _COMPARES:
        writes.add(destination.family)
        if mnemonic == "xchg":
            writes |= reads
        if mnemonic == "mulx":
            writes |= {r.family for r in registers_of(operands[1])}
        source = implicit | {r.family for o in operands[1:] for r in registers_of(o)}
        is_zero = mnemonic in ("xor", "sub") and operands[1] == destination
        if (mnemonic in _WRITES_ONLY and destination.width >= 32) or (mnemonic == "imul" and len(operands) == 3) or is_zero:
            reads = set() if is_zero else source
    conditional = mnemonic.startswith(("set", "cmov", "j")) or mnemonic in ("adc", "sbb", "cmc")
    if conditional:
        reads.add(_FLAGS)
    if mnemonic not in _NO_FLAGS | _FLAGLESS and not mnemonic.startswith(("set", "cmov")):
        writes.add(_FLAGS)
    return reads, writes
