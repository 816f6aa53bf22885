"""
The lines of the table of forms: one per mnemonic and operand shape.

A line names the operands (access and kind), the widths, the semantics function and the flags it reads, writes and may
leave undefined, as letters. The semantics function gets the operands that are read, in order, then the flags
that are read; its effect lists the operands that are written, in order. Of its operands at most one is memory.
"""

from collections.abc import Iterator

from ruledb.semantics import arith, bits, bitwise, control, divide, move, shift, stack
from ruledb.semantics.form_line import Form, line

__all__ = ["lines"]

_ALL = (8, 16, 32, 64)
_WORDS = (16, 32, 64)
_LONG = (32, 64)


def lines() -> Iterator[Form]:
    """Every line. SDM vol. 2, "Instruction Set Reference"."""
    yield from _moves()
    yield from _arithmetic()
    yield from _bitwise()
    yield from _shifts()
    yield from _extensions()
    for code, (flags, condition) in control.CONDITIONS.items():
        yield line(f"set{code}", "w r|m", (8,), control.setcc(condition), reads=flags)
        yield line(f"cmov{code}", "rw r, r r|m", _WORDS, move.cmov(condition), reads=flags)
        yield line(f"j{code}", "- label", _ALL[:1], control.jump(condition), reads=flags)
    yield line("clc", "", _ALL[:1], control.clc, writes="C")
    yield line("stc", "", _ALL[:1], control.stc, writes="C")
    yield line("cmc", "", _ALL[:1], control.cmc, reads="C", writes="C")
    yield line("nop", "", _ALL[:1], control.nop)


def _moves() -> Iterator[Form]:
    yield line("mov", "w r|m, r r|m|imm", _ALL, move.mov)
    for width in _WORDS:
        yield line("movzx", "w r, r r8|m8", (width,), move.zero_extend(width))
        yield line("movsx", "w r, r r8|m8", (width,), move.sign_extend(width))
        yield line("lea", "w r, r mem", (width,), move.lea(width))
    for width in _LONG:
        yield line("movzx", "w r, r r16|m16", (width,), move.zero_extend(width))
        yield line("movsx", "w r, r r16|m16", (width,), move.sign_extend(width))
        yield line("bswap", "rw r", (width,), bitwise.bswap)
    yield line("movsxd", "w r, r r32|m32", (64,), move.sign_extend(64))
    # With memory, xchg locks the bus: a barrier.
    yield line("xchg", "rw r, rw r", _ALL, move.xchg)
    for mnemonic, width in (("cbw", 16), ("cwde", 32), ("cdqe", 64)):
        yield line(mnemonic, "", (width,), move.sign_extend(width), implicit="w acc, r half")
    for mnemonic, width in (("cwd", 16), ("cdq", 32), ("cqo", 64)):
        yield line(mnemonic, "", (width,), move.sign_spread, implicit="w data, r acc")
    yield line("push", "r r|m", (16, 64), stack.push, implicit="w below, rw sp")
    yield line("push", "r imm", (64,), stack.push, implicit="w below, rw sp")
    yield line("pop", "w r|m", (16, 64), stack.pop, implicit="r top, rw sp")
    yield line("leave", "", (64,), stack.leave, implicit="r frame, rw bp, w sp")


def _arithmetic() -> Iterator[Form]:
    yield line("add", "rw r|m, r r|m|imm", _ALL, arith.add, writes="OSZAPC")
    yield line("sub", "rw r|m, r r|m|imm", _ALL, arith.sub, writes="OSZAPC")
    yield line("adc", "rw r|m, r r|m|imm", _ALL, arith.adc, reads="C", writes="OSZAPC")
    yield line("sbb", "rw r|m, r r|m|imm", _ALL, arith.sbb, reads="C", writes="OSZAPC")
    yield line("cmp", "r r|m, r r|m|imm", _ALL, arith.cmp, writes="OSZAPC")
    yield line("inc", "rw r|m", _ALL, arith.inc, writes="OSZAP")
    yield line("dec", "rw r|m", _ALL, arith.dec, writes="OSZAP")
    yield line("neg", "rw r|m", _ALL, arith.neg, writes="OSZAPC")
    yield line("xadd", "rw r|m, rw r", _ALL, arith.xadd, writes="OSZAPC")
    # Whether 32 bits that are not exchanged clear the upper half of a register differs between processors: not modelled.
    yield line("cmpxchg", "rw r, r r", (8, 16, 64), arith.cmpxchg, implicit="rw acc", writes="OSZAPC")
    yield line("cmpxchg", "rw m, r r", _ALL, arith.cmpxchg, implicit="rw acc", writes="OSZAPC")
    yield line("mul", "r r|m", (8,), arith.mul_byte, implicit="w ax, r al", writes="OSZAPC", undefined="SZAP")
    yield line("mul", "r r|m", _WORDS, arith.mul, implicit="w data, rw acc", writes="OSZAPC", undefined="SZAP")
    yield line("imul", "r r|m", (8,), arith.imul_byte, implicit="w ax, r al", writes="OSZAPC", undefined="SZAP")
    yield line("imul", "r r|m", _WORDS, arith.imul_wide, implicit="w data, rw acc", writes="OSZAPC", undefined="SZAP")
    yield line("imul", "rw r, r r|m", _WORDS, arith.imul, writes="OSZAPC", undefined="SZAP")
    yield line("imul", "w r, r r|m, r imm", _WORDS, arith.imul, writes="OSZAPC", undefined="SZAP")
    yield line("div", "r r|m", (8,), divide.div_byte, implicit="rw ax", writes="OSZAPC", undefined="OSZAPC")
    yield line("div", "r r|m", _WORDS, divide.div, implicit="rw data, rw acc", writes="OSZAPC", undefined="OSZAPC")
    yield line("idiv", "r r|m", (8,), divide.idiv_byte, implicit="rw ax", writes="OSZAPC", undefined="OSZAPC")
    yield line("idiv", "r r|m", _WORDS, divide.idiv, implicit="rw data, rw acc", writes="OSZAPC", undefined="OSZAPC")


def _bitwise() -> Iterator[Form]:
    yield line("and", "rw r|m, r r|m|imm", _ALL, bitwise.and_, writes="OSZAPC", undefined="A")
    yield line("or", "rw r|m, r r|m|imm", _ALL, bitwise.or_, writes="OSZAPC", undefined="A")
    yield line("xor", "rw r|m, r r|m|imm", _ALL, bitwise.xor, writes="OSZAPC", undefined="A")
    yield line("test", "r r|m, r r|imm", _ALL, bitwise.test, writes="OSZAPC", undefined="A")
    yield line("not", "rw r|m", _ALL, bitwise.not_)
    # With memory, an offset in a register addresses a bit string: a barrier.
    for operands in ("r, r r|imm8", "m, r imm8"):
        yield line("bt", f"r {operands}", _WORDS, bitwise.bt, writes="OSAPC", undefined="OSAP")
        yield line("bts", f"rw {operands}", _WORDS, bitwise.bts, writes="OSAPC", undefined="OSAP")
        yield line("btr", f"rw {operands}", _WORDS, bitwise.btr, writes="OSAPC", undefined="OSAP")
        yield line("btc", f"rw {operands}", _WORDS, bitwise.btc, writes="OSAPC", undefined="OSAP")
    yield line("bsf", "w r, r r|m", _WORDS, bitwise.bsf, writes="OSZAPC", undefined="OSAPC")
    yield line("bsr", "w r, r r|m", _WORDS, bitwise.bsr, writes="OSZAPC", undefined="OSAPC")


def _shifts() -> Iterator[Form]:
    # without a count: the encoding D1, which shifts by 1
    for operands, implicit in (("rw r|m, r cl|imm8", ""), ("rw r|m", "r 1")):
        yield line("shl", operands, _ALL, shift.shl, implicit=implicit, writes="OSZAPC", undefined="OAC")
        yield line("shr", operands, _ALL, shift.shr, implicit=implicit, writes="OSZAPC", undefined="OAC")
        yield line("sar", operands, _ALL, shift.sar, implicit=implicit, writes="OSZAPC", undefined="OA")
        yield line("rol", operands, _ALL, shift.rol, implicit=implicit, writes="OC", undefined="O")
        yield line("ror", operands, _ALL, shift.ror, implicit=implicit, writes="OC", undefined="O")
    yield line("shld", "rw r|m, r r, r cl|imm8", _WORDS, shift.shld, writes="OSZAPC", undefined="OSZAPC")
    yield line("shrd", "rw r|m, r r, r cl|imm8", _WORDS, shift.shrd, writes="OSZAPC", undefined="OSZAPC")


def _extensions() -> Iterator[Form]:
    yield line("popcnt", "w r, r r|m", _WORDS, bits.popcnt, writes="OSZAPC", needs="popcnt")
    yield line("lzcnt", "w r, r r|m", _WORDS, bits.lzcnt, writes="OSZAPC", undefined="OSAP", needs="lzcnt")
    yield line("tzcnt", "w r, r r|m", _WORDS, bits.tzcnt, writes="OSZAPC", undefined="OSAP", needs="bmi1")
    yield line("andn", "w r, r r, r r|m", _LONG, bits.andn, writes="OSZAPC", undefined="AP", needs="bmi1")
    yield line("blsi", "w r, r r|m", _LONG, bits.blsi, writes="OSZAPC", undefined="AP", needs="bmi1")
    yield line("blsr", "w r, r r|m", _LONG, bits.blsr, writes="OSZAPC", undefined="AP", needs="bmi1")
    yield line("blsmsk", "w r, r r|m", _LONG, bits.blsmsk, writes="OSZAPC", undefined="AP", needs="bmi1")
    yield line("bextr", "w r, r r|m, r r", _LONG, bits.bextr, writes="OSZAPC", undefined="SAP", needs="bmi1")
    yield line("bzhi", "w r, r r|m, r r", _LONG, bits.bzhi, writes="OSZAPC", undefined="AP", needs="bmi2")
    yield line("pdep", "w r, r r, r r|m", _LONG, bits.pdep, needs="bmi2")
    yield line("pext", "w r, r r, r r|m", _LONG, bits.pext, needs="bmi2")
    yield line("shlx", "w r, r r|m, r r", _LONG, shift.shlx, needs="bmi2")
    yield line("shrx", "w r, r r|m, r r", _LONG, shift.shrx, needs="bmi2")
    yield line("sarx", "w r, r r|m, r r", _LONG, shift.sarx, needs="bmi2")
    yield line("rorx", "w r, r r|m, r imm8", _LONG, shift.rorx, needs="bmi2")
    yield line("mulx", "w r, w r, r r|m", _LONG, arith.mulx, implicit="r data", needs="bmi2")
    yield line("movbe", "w r, r m", _WORDS, move.movbe, needs="movbe")
    yield line("movbe", "w m, r r", _WORDS, move.movbe, needs="movbe")
    yield line("adcx", "rw r, r r|m", _LONG, arith.adcx, reads="C", writes="C", needs="adx")
    yield line("adox", "rw r, r r|m", _LONG, arith.adox, reads="O", writes="O", needs="adx")
