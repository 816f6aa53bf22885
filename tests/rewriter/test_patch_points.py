"""What other tools patch, or look for, stays where it is."""

import pytest
from sample_rules import RULES

from rewriter.driver import rewrite
from ruledb.machine import entries
from ruledb.machine.elf import load

MAIN = """
    .intel_syntax noprefix
    .text
    .type f, @function
f:  .cfi_startproc
    {body}
    .cfi_endproc
    .size f, .-f
    .globl main
main:
    .cfi_startproc
    mov esi, 9
    call f
    ret
    .cfi_endproc
    {more}
    .section .note.GNU-stack,"",@progbits
"""


def rewritten(path):
    """The image of the program at *path*, and that of its rewritten form."""
    image = load(path)
    return image, image.patched(rewrite(image.data, RULES).data)


def planted(build, body, more=""):
    """As above, of a program whose function `f` is *body*; the sample rules match in it. And what stands at `f`, before and after."""
    image, after = rewritten(build(MAIN.format(body=body, more=more), suffix=".s"))
    (f,) = [s for s in image.symbols if s.name == "f"]
    return image.read(f.address, f.size), after.read(f.address, f.size)


AREA = "0f1f440000"
SPANNED = "mov ecx, esi\n {label} .byte 0x0f, 0x1f, 0x44, 0, 0\n mov eax, ecx\n ret"
LISTED = '.section __patchable_function_entries,"awo",@progbits,.text\n .balign 8\n .quad .Larea'


def test_patchable_areas_stay(build):
    """An area of NOPs whose address a program keeps is in no window; others are filler."""
    before, after = planted(build, SPANNED.format(label=".Larea:"), LISTED)
    assert before == after
    before, after = planted(build, SPANNED.format(label=""))
    assert before != after


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("kind", ["-pie", "-no-pie"])
def test_patchable_entries_stay(build, level, kind):
    """The compiler's areas at and before functions' entries stay whole."""
    source = "int g; int f(int a) { int r = 0; while (a--) r += g + 1; return r; } int main(int c, char **v) { g = c; return f(3); }"
    image, after = rewritten(build(source, level, kind, "-fpatchable-function-entry=6,2"))
    for name in ("f", "main"):
        (start,) = [s.address - 2 for s in image.symbols if s.name == name]
        assert image.read(start, 6) == after.read(start, 6) == b"\x90" * 6
    assert image.data != after.data


SLED = '.section xray_instr_map,"ao",@progbits,.text\n.Lmap: .quad .Lsled-.Lmap, f-(.Lmap+8)\n .byte 1, 0, 2\n .zero 13'


def test_sleds_stay(build, monkeypatch):
    """A return that XRay overwrites is not moved; without its map, it would be."""
    body = "mov eax, 0\n.Lsled: ret\n .byte 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 2, 0, 0"
    before, after = planted(build, body, SLED)
    assert before[5:] == after[5:]
    assert before[:5] != after[:5]
    monkeypatch.setattr(entries, "_sleds", lambda _: ())
    before, after = planted(build, body, SLED)
    assert before[5:] != after[5:]


@pytest.mark.parametrize(
    ("end", "is_moved"),
    [("ret", True), ("jmp main", True), ("notrack jmp [rip+.Lslot]", False), (".byte 0x3e\n jmp main", False), (".byte 0xf2\n ret", True)],
    ids=["return", "jump", "notrack", "hint", "bnd"],
)
def test_only_plain_ends_move(build, end, is_moved):
    """A return or plain jump moves up to a shorter window; a jump that says `notrack`, or has a hint, stays whole where it is."""
    before, after = planted(build, f"mov eax, 0\n {end}", ".data\n.Lslot: .quad main\n.text")
    assert (before[5:] == after[5:]) == (not is_moved)


def test_alignment_of_loops_stays(build):
    """NOPs ahead of a loop keep their bytes, however much room there is before them."""
    before, after = planted(build, "mov eax, 0\n mov ecx, 0\n .p2align 5\n1: sub ecx, 1\n jns 1b\n ret")
    n_bytes = before.index(b"\x83\xe9\x01")
    assert before[10:n_bytes] == after[10:n_bytes]
    assert before[:10] != after[:10]
