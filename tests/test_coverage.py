"""The share of modelled instructions: what is counted, what is left out, and that nothing is decoded in two ways."""

import pytest
from asm import code

from ruledb.coverage import EXCLUDED, cover, form_text
from ruledb.machine.codec import decode, encode, split, without_constants
from ruledb.machine.elf import load
from ruledb.machine.functions import functions
from ruledb.machine.instruction import parse_instruction
from ruledb.semantics.forms import barrier


def _one(text: str) -> bytes:
    return b"".join(map(encode, code(text)))


@pytest.fixture
def counted(monkeypatch):
    """Counts the instructions of bytes as those of a file's only function."""

    class _Image:
        def __init__(self, data):
            self.data = data

        def read(self, start, n_bytes):
            return self.data[start : start + n_bytes]

    class _Function:
        def __init__(self, end):
            self.start, self.end = 0, end

    monkeypatch.setattr("ruledb.coverage.load", _Image)
    monkeypatch.setattr("ruledb.coverage.functions", lambda image: [_Function(len(image.data))])
    return lambda *parts: cover(parts)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("90", "nop"), ("660f1f440000", "nop"), ("f30f1efa", "endbr64"), ("e800000000", "call"), ("ffd0", "call"), ("c3", "ret"),
        ("eb00", "jmp"), ("ffe0", "jmp"), ("0f05", "syscall"), ("f00fb10b", "lock"), ("8703", "xchg with memory"), ("0faef0", "fence"),
        ("f3a4", "rep string"), ("f2ae", "rep string"), ("64488b042528000000", "fs: or gs:"), ("9c", "flags as a whole"),
        ("9f", "flags as a whole"), ("ec", "privileged or I/O"), ("f4", "privileged or I/O"), ("0f57c0", "x87, MMX, SSE or AVX"),
        ("d9e8", "x87, MMX, SSE or AVX"), ("c5f877", "x87, MMX, SSE or AVX"), ("0fae13", "x87, MMX, SSE or AVX"),
        ("660fefc0", "x87, MMX, SSE or AVX"), ("f20f1045f8", "x87, MMX, SSE or AVX"), ("0f77", "x87, MMX, SSE or AVX"),
    ],
)  # fmt: skip
def test_the_fixed_list_is_left_out(counted, data, reason):
    """Each kind of instruction of the fixed list is counted under its reason and takes no part in the share."""
    found = counted(bytes.fromhex(data))
    assert found.excluded == {reason: 1}
    assert (found.instructions, found.counted, found.modelled, found.missing) == (1, 0, 0, ())
    assert reason in [name for name, _ in EXCLUDED]


def test_forms_count(counted):
    """What is modelled and what is missing is told by form, over all files together."""
    known = _one("add eax, ebx; mov rcx, 5; sete al")
    unknown = bytes.fromhex("0fa2 0f31 0fa2".replace(" ", ""))  # cpuid, rdtsc, cpuid
    found = counted(known + unknown, known + bytes.fromhex("06"))
    assert (found.instructions, found.counted, found.modelled, found.excluded) == (10, 10, 6, {})
    assert found.windows == (8, 4)
    assert [(m.mnemonic, m.count) for m in found.missing] == [("cpuid", 2), ("(bad)", 1), ("rdtsc", 1)]
    assert found.share == 0.6


def test_nothing_is_all_modelled(counted):
    """Without instructions nothing is missing."""
    found = counted(b"")
    assert (found.share, found.windows, found.missing) == (1.0, (0, 0), ())


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("add dword ptr [rbx+5], ecx", "add m32, r32"), ("movzx eax, byte ptr [rdx]", "movzx r32, m8"), ("je somewhere", "je label"),
        ("mov al, 3", "mov r8, imm"), ("movaps xmm1, xmm2", "movaps xmm, xmm"), ("lea rax, [rbx]", "lea r64, m"), ("cdq", "cdq"),
    ],
)  # fmt: skip
def test_a_form_is_named_by_its_operand_kinds(text, form):
    """A form's text holds the mnemonic and each operand's kind and width, no registers and no numbers."""
    assert form_text(parse_instruction(text)) == form


def test_the_table_decides(corpus):
    """Over a real program, what counts as modelled is exactly what the table of forms models, one instruction at a time."""
    image = load(corpus / "vm-O2")
    decoded = [d for f in functions(image) for d in decode(image.read(f.start, f.end - f.start))]
    found = cover([corpus / "vm-O2"])
    assert found.instructions == len(decoded)
    left_out = {"nop"}  # modelled, and left out all the same
    modelled = sum(barrier(d.instruction) is None and d.instruction.mnemonic not in left_out for d in decoded)
    assert found.modelled == modelled > 0


def test_pieces_are_those_of_the_decoder(corpus):
    """The fast cut of code into instructions is the decoder's, invalid bytes included."""
    data = (corpus / "vm-O2").read_bytes()
    assert split(data) == [d.code for d in decode(data)]


def test_without_constants_the_form_stays(corpus):
    """Zeros for constants keep each instruction's length, form, registers and effects."""
    for data in set(split((corpus / "vm-O2").read_bytes())):
        ours, bare = next(decode(data)), next(decode(without_constants(data)))
        assert (ours.length, ours.flow, form_text(ours.instruction)) == (bare.length, bare.flow, form_text(bare.instruction))
        assert barrier(ours.instruction) == barrier(bare.instruction)
        assert (ours.is_nop, ours.has_lock, ours.has_rep, ours.segment) == (bare.is_nop, bare.has_lock, bare.has_rep, bare.segment)
