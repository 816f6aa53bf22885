"""Every modelled register form as texts, and their bytes from GNU as."""

import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from ruledb.machine.instruction import Instruction, Mem, parse_instruction
from ruledb.machine.registers import Register, register_named
from ruledb.semantics.control import CONDITIONS

WIDTHS = (8, 16, 32, 64)
WORDS = (16, 32, 64)
COUNTS = (0, 1, 2, 5, 7, 8, 9, 15, 16, 17, 18, 24, 31, 32, 33, 47, 48, 63, 64, 65, 255)
_IMMEDIATES = {8: (0, 1, -1, 5, 127, -128), 16: (0, 1, -1, 5, 127, -128, 0x1234, 0x7FFF, -0x8000)}
_WIDE = (0, 1, -1, 5, 127, -128, 128, 0x12345678, 0x7FFFFFFF, -0x80000000)
_PAIRS = ((0, 3), (3, 3), (8, 1), (6, 0), (4, 13))
_BYTES = (("al", "bl"), ("bl", "bl"), ("ah", "bl"), ("al", "bh"), ("ch", "dh"), ("ah", "al"), ("dh", "dh"), ("sil", "r9b"), ("spl", "al"))
_TWO = ("mov", "add", "adc", "sub", "sbb", "cmp", "and", "or", "xor", "test", "xchg")
_SHIFTS = ("shl", "shr", "sar", "rol", "ror")


@dataclass(frozen=True)
class Case:
    """One concrete instruction: its text, value, bytes, and the registers whose edge values matter, first two first."""

    text: str
    instruction: Instruction
    code: bytes
    inputs: tuple[Register, ...]


def shape(case: Case) -> tuple[tuple[str, int], ...]:
    """Operand kinds and register widths of a case."""
    return tuple(("r", o.width) if isinstance(o, Register) else (type(o).__name__, 0) for o in case.instruction.operands)


def pairs(width: int) -> list[tuple[str, str]]:
    """Register pairs of *width*: different, equal, extended, with the stack pointer, and high bytes."""
    return list(_BYTES) if width == 8 else [(str(Register(a, width)), str(Register(b, width))) for a, b in _PAIRS]


def immediates(width: int) -> tuple[int, ...]:
    """Immediates to test at *width*."""
    return _IMMEDIATES.get(width, _WIDE)


def _binary() -> list[str]:
    texts = []
    for mnemonic in _TWO:
        for width in WIDTHS:
            texts += [f"{mnemonic} {a}, {b}" for a, b in pairs(width)]
            if mnemonic != "xchg":
                firsts = dict.fromkeys(a for a, _ in pairs(width)[:3])
                texts += [f"{mnemonic} {a}, {value}" for a in firsts for value in immediates(width)]
    texts += ["xchg eax, eax", "xchg rax, rax", "xchg ax, ax", "xchg al, al", "mov eax, eax", "mov rbx, 0x123456789abcdef0"]
    return texts


def _unary() -> list[str]:
    texts = []
    for width in WIDTHS:
        texts += [f"{m} {a}" for m in ("inc", "dec", "neg", "not") for a, _ in pairs(width)]
        texts += [f"{m} {b}" for m in ("mul", "imul") for _, b in pairs(width)]
        texts += [f"{m} {Register(f, width)}" for m in ("mul", "imul") for f in (0, 2)]
    texts += [f"bswap {Register(f, w)}" for w in (32, 64) for f in (0, 9)]
    return [
        *texts,
        "cbw",
        "cwde",
        "cdqe",
        "cwd",
        "cdq",
        "cqo",
        "clc",
        "stc",
        "cmc",
        "nop",
        "nop dword ptr [rax+rax*1]",
        "nop word ptr [rax]",
    ]


def _multiply() -> list[str]:
    texts = []
    for width in WORDS:
        texts += [f"imul {a}, {b}" for a, b in pairs(width)]
        texts += [f"imul {a}, {b}, {value}" for a, b in pairs(width)[:3] for value in immediates(width)]
    return texts


def _shift() -> list[str]:
    texts = []
    for width in WIDTHS:
        firsts = [*dict.fromkeys(a for a, _ in pairs(width)), "cl" if width == 8 else str(Register(1, width))]
        for mnemonic in _SHIFTS:
            texts += [f"{mnemonic} {a}{count}" for a in firsts for count in (", cl", "")]
            texts += [f"{mnemonic} {a}, {count}" for a in firsts[:2] for count in COUNTS]
    for width in WORDS:
        for mnemonic in ("shld", "shrd"):
            texts += [f"{mnemonic} {a}, {b}, {count}" for a, b in pairs(width)[:2] for count in COUNTS]
            texts += [f"{mnemonic} {a}, {b}, cl" for a, b in pairs(width)]
    return texts


def _bits() -> list[str]:
    texts = []
    for width in WORDS:
        for mnemonic in ("bt", "bts", "btr", "btc"):
            texts += [f"{mnemonic} {a}, {b}" for a, b in pairs(width)]
            texts += [f"{mnemonic} {a}, {offset}" for a, _ in pairs(width)[:2] for offset in COUNTS]
        texts += [f"{m} {a}, {b}" for m in ("bsf", "bsr") for a, b in pairs(width)]
    return texts


def _extend() -> list[str]:
    texts = []
    for mnemonic in ("movzx", "movsx"):
        texts += [f"{mnemonic} {Register(f, w)}, {b}" for w in WORDS for f, b in ((0, "bl"), (0, "al"), (9, "sil"))]
        texts += [f"{mnemonic} {Register(3, w)}, {b}" for w in (16, 32) for b in ("ah", "bh")]
        texts += [f"{mnemonic} {Register(a, w)}, {Register(b, 16)}" for w in (32, 64) for a, b in _PAIRS]
    return texts + [f"movsxd {Register(a, 64)}, {Register(b, 32)}" for a, b in _PAIRS]


_ADDRESSES = (
    "[rbx]", "[rbx+rcx]", "[rbx+rcx*2+5]", "[rax+rax*8-128]", "[rcx*4+0x12345678]", "[r13+r12*1+1]", "[rsp+rbp*2-5]", "[rdi-0x7fffffff]", "[0x1000]",
)  # fmt: skip


def _conditional() -> list[str]:
    texts = [f"lea {Register(f, w)}, {address}" for w in WORDS for f in (0, 9) for address in _ADDRESSES]
    texts += [f"set{code} {a}" for code in CONDITIONS for a in ("al", "bh", "r9b")]
    texts += [f"cmov{code} {a}, {b}" for code in CONDITIONS for w in WORDS for a, b in pairs(w)[:3]]
    return texts


def _counting() -> list[str]:
    texts = []
    for width in WORDS:
        texts += [f"{m} {a}, {b}" for m in ("popcnt", "lzcnt", "tzcnt") for a, b in pairs(width)]
    for width in (32, 64):
        texts += [f"{m} {a}, {b}" for m in ("blsi", "blsr", "blsmsk", "adcx", "adox") for a, b in pairs(width)]
        for a, b in pairs(width):
            c = Register(1, width)
            texts += [f"{m} {c}, {a}, {b}" for m in ("andn", "bextr", "bzhi", "pdep", "pext", "shlx", "shrx", "sarx", "mulx")]
        texts += [f"{m} {a}, {a}, {a}" for m in ("andn", "bextr", "bzhi", "pdep", "pext", "shlx", "mulx") for a, _ in pairs(width)[:1]]
        texts += [f"rorx {a}, {b}, {count}" for a, b in pairs(width)[:2] for count in COUNTS]
    return texts


def _exchanging() -> list[str]:
    texts = []
    for width in WIDTHS:
        registers = [*pairs(width), (f"r11{_SUFFIXES[width]}", f"r9{_SUFFIXES[width]}")]
        texts += [f"{m} {a}, {b}" for m in ("xadd", "cmpxchg") for a, b in registers if (m, width) != ("cmpxchg", 32)]
    return texts


_SUFFIXES = {8: "b", 16: "w", 32: "d", 64: ""}


def form_texts() -> list[str]:
    """One text or more for every modelled form on registers at every width."""
    return [*_binary(), *_unary(), *_multiply(), *_shift(), *_bits(), *_extend(), *_conditional(), *_counting(), *_exchanging()]


_PTR = {8: "byte ptr", 16: "word ptr", 32: "dword ptr", 64: "qword ptr"}
_ACCESSED = ("[rbx]", "[rsp+8]", "[rbp+rdi*1-4]", "[rax+rbx*8+0x20]", "[rdi*4+0x40000800]", "[0x40000ffe]", "[r13]")


def _memory_of(width: int, i: int) -> str:
    return f"{_PTR[width]} {_ACCESSED[i % len(_ACCESSED)]}"


def _stored() -> list[str]:
    """Forms whose memory operand is the destination, or the first one."""
    texts = []
    for i, width in enumerate(WIDTHS):
        source, m = Register(2, width), [_memory_of(width, i + k) for k in range(3)]
        values = immediates(width)[-3:]
        for n, mnemonic in enumerate(("mov", "add", "adc", "sub", "sbb", "cmp", "and", "or", "xor", "test")):
            texts += [f"{mnemonic} {m[n % 3]}, {source}", *(f"{mnemonic} {m[(n + 1) % 3]}, {v}" for v in values)]
        texts += [f"{n} {m[0]}" for n in ("inc", "dec", "neg", "not", "mul", "imul", "div", "idiv")]
        texts += [f"{n} {m[1]}{count}" for n in _SHIFTS for count in ("", ", cl", ", 0", ", 3", ", 33")]
        texts += [f"{n} {m[2]}, {source}" for n in ("xadd", "cmpxchg")] + [f"mov {_PTR[width]} [rdx], {source}"]
    for i, width in enumerate(WORDS):
        source, m = Register(2, width), _memory_of(width, i)
        texts += [f"{n} {m}, {source}, {count}" for n in ("shld", "shrd") for count in ("cl", "5", "17")]
        texts += [f"{n} {m}, {count}" for n in ("bt", "bts", "btr", "btc") for count in (0, 7, 77)] + [f"movbe {m}, {source}"]
    return texts + [f"set{code} {_memory_of(8, i)}" for i, code in enumerate(CONDITIONS)]


def _loaded() -> list[str]:
    """Forms whose memory operand is the source."""
    texts = []
    for i, width in enumerate(WIDTHS):
        target, m = Register(2, width), [_memory_of(width, i + k) for k in range(3)]
        texts += [f"{n} {target}, {m[k % 3]}" for k, n in enumerate(("mov", "add", "adc", "sub", "sbb", "cmp", "and", "or", "xor"))]
    for i, width in enumerate(WORDS):
        target, m = Register(2, width), [_memory_of(width, i + k) for k in range(3)]
        texts += [f"{n} {target}, {m[k % 3]}" for k, n in enumerate(("imul", "bsf", "bsr", "popcnt", "lzcnt", "tzcnt", "movbe"))]
        texts += [
            f"imul {target}, {m[0]}, 7",
            f"movzx {target}, {_memory_of(8, i)}",
            f"movsx {target}, {_memory_of(8, i)}",
            f"mov {Register(3, width)}, {_PTR[width]} [rbx]",
        ]
        texts += [f"cmov{code} {target}, {m[1]}" for code in CONDITIONS]
    for i, width in enumerate((32, 64)):
        target, other, m = Register(2, width), Register(1, width), [_memory_of(width, i + k) for k in range(3)]
        texts += [f"{n} {target}, {m[0]}" for n in ("blsi", "blsr", "blsmsk", "adcx", "adox")] + [f"rorx {target}, {m[1]}, 9"]
        texts += [f"{n} {target}, {m[1]}, {other}" for n in ("bextr", "bzhi", "shlx", "shrx", "sarx")]
        texts += [f"{n} {target}, {other}, {m[2]}" for n in ("andn", "pdep", "pext", "mulx")]
        texts += [f"{n} {target}, {_memory_of(16, i)}" for n in ("movzx", "movsx")]
    return [*texts, "movsxd rdx, dword ptr [rbx]", "movsxd rbx, dword ptr [rsp+8]"]


def _stack() -> list[str]:
    texts = ["leave", "push 5", "push -128", "push 0x12345678", "push rsp", "pop rsp", "push qword ptr [rsp+8]", "pop qword ptr [rsp+8]"]
    texts += ["pop qword ptr [rsp]", "push qword ptr [rsp-8]", "pop word ptr [rbx]", "push word ptr [rbx]", "push sp", "pop sp"]
    return texts + [f"{n} {r}" for n in ("push", "pop") for r in ("rax", "rbp", "r13", "ax", "r9w", "qword ptr [rbx+4]")]


def _trapping() -> list[str]:
    return [f"{n} {Register(f, width)}" for n in ("div", "idiv") for width in WIDTHS for f in (3, 9, 0, 2)] + ["div bh", "idiv ah"]


def memory_texts() -> list[str]:
    """One text or more for every modelled form that accesses memory, traps or jumps, at every width."""
    return [*_stored(), *_loaded(), *_stack(), *_trapping(), *(f"j{code} L" for code in CONDITIONS)]


def assemble(texts: list[str]) -> list[bytes]:
    """The bytes of each text, from one run of GNU as."""
    lines = [".intel_syntax noprefix", ".text"]
    for i, text in enumerate(texts):
        lines += [f"S{i}: {text}", f"E{i}:"]
    lines += ['.section .lengths, "a"', *(f".byte E{i} - S{i}" for i in range(len(texts)))]
    with TemporaryDirectory() as folder:
        source, binary = Path(folder, "forms.s"), Path(folder, "forms.o")
        source.write_text("\n".join(lines) + "\n")
        subprocess.run(["as", "--64", "-o", binary, source], check=True)
        parts = []
        for section in (".text", ".lengths"):
            subprocess.run(["objcopy", "-O", "binary", "-j", section, binary, Path(folder, "part")], check=True)
            parts.append(Path(folder, "part").read_bytes())
    text, lengths = parts
    starts = [sum(lengths[:i]) for i in range(len(lengths))]
    return [text[start : start + length] for start, length in zip(starts, lengths, strict=True)]


_IMPLICIT = {"cbw": "al", "cwde": "ax", "cdqe": "eax", "cwd": "ax", "cdq": "eax", "cqo": "rax"}


_FIRST_WRITTEN = frozenset({"andn", "bextr", "bzhi", "pdep", "pext", "shlx", "shrx", "sarx"})


def _inputs(instruction: Instruction) -> tuple[Register, ...]:
    registers = [o for o in instruction.operands if isinstance(o, Register)]
    if instruction.mnemonic in _IMPLICIT:
        return (register_named(_IMPLICIT[instruction.mnemonic]),)
    if not registers or any(isinstance(o, Mem) and o.width for o in instruction.operands):
        return tuple(dict.fromkeys(registers))
    if instruction.mnemonic in ("mul", "imul") and len(instruction.operands) == 1:
        registers.append(Register(0, registers[0].width))
    if instruction.mnemonic in _FIRST_WRITTEN:
        registers = [*registers[-2:], *registers[:-2]]
    if instruction.mnemonic == "cmpxchg":
        registers = [registers[0], Register(0, registers[0].width), registers[1]]
    if instruction.mnemonic == "mulx":
        registers = [registers[-1], Register(2, registers[-1].width)]
    return tuple(dict.fromkeys(registers))


@cache
def memory_cases() -> tuple[Case, ...]:
    """Every form of `memory_texts` with its bytes; a jump goes one byte behind its end."""
    texts = list(dict.fromkeys(memory_texts()))
    instructions = [parse_instruction(text) for text in texts]
    codes = assemble([text.replace(" L", " .+3") for text in texts])
    return tuple(Case(*row, _inputs(row[1])) for row in zip(texts, instructions, codes, strict=True))


@cache
def cases() -> tuple[Case, ...]:
    """Every form of `form_texts` with its bytes."""
    texts = list(dict.fromkeys(form_texts()))
    instructions = [parse_instruction(text) for text in texts]
    return tuple(Case(*row, _inputs(row[1])) for row in zip(texts, instructions, assemble(texts), strict=True))
