"""Functions with tables of jumps are rewritten, and what their tables lead to is respected."""

import shutil
import subprocess

import numpy as np
import pytest
from sample_rules import RULES

from rewriter.driver import rewrite
from ruledb.machine import entries, fans
from ruledb.machine.dispatch import Entries

PLANTED = """
    .intel_syntax noprefix
    .text
pick:
    .cfi_startproc
    mov ecx, esi
    mov eax, ecx
    lea rdx, .Ltable[rip]
    movsxd r8, dword ptr [rdx+rdi*4]
    add r8, rdx
    jmp r8
.Lfirst:
    ret
.Lsecond:
    lea eax, [rcx+rcx]
    ret
.Lthird:
    mov ecx, edi
.Lfourth:
    mov eax, ecx
    ret
    .cfi_endproc
    .size pick, .-pick
    .globl main
main:
    .cfi_startproc
    push rbx
    .cfi_adjust_cfa_offset 8
    xor ebx, ebx
    mov edi, 3
1:  mov ecx, 0x1000
    mov esi, 10
    call pick
    add ebx, eax
    sub edi, 1
    jns 1b
    mov eax, ebx
    pop rbx
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_endproc
    .size main, .-main
    .section .rodata
    .balign 4
.Ltable:
    .long .Lfirst-.Ltable, .Lsecond-.Ltable, .Lthird-.Ltable, .Lfourth-.Ltable
    .section .note.GNU-stack,"",@progbits
"""
EXIT_CODE = 10 + 20 + 2 + 10


@pytest.fixture(scope="module")
def planted(build, tmp_path_factory):
    """A program in which rules match ahead of a table's jump, and across a place that it leads to."""
    if shutil.which("strip") is None:
        pytest.skip("needs strip")
    path = tmp_path_factory.mktemp("planted") / "p"
    subprocess.run(["strip", "-o", path, build(PLANTED, suffix=".s")], check=True)
    return path


def exit_code(path, folder, run):
    """That of the program at *path* when rewritten."""
    out = folder / "p"
    out.write_bytes(rewrite(path.read_bytes(), RULES).data)
    out.chmod(0o755)
    return run(out)[0]


def test_what_tables_lead_to_is_respected(planted, run, tmp_path):
    """What is live at any of a table's targets is live at its jump, and no window spans a target."""
    assert rewrite(planted.read_bytes(), RULES).opaque == {}
    assert run(planted)[0] == exit_code(planted, tmp_path, run) == EXIT_CODE


@pytest.mark.parametrize("mutation", ["edges", "entries"])
def test_missing_targets_are_caught(planted, run, tmp_path, monkeypatch, mutation):
    """Without the edges to all but the first target, or without these as entries, the planted program is broken."""
    whole = fans.entries_of

    def careless(*arguments):
        found = whole(*arguments)
        return Entries(found.targets[:1], found.stop)

    monkeypatch.setattr(fans, "entries_of", careless)
    if mutation == "entries":
        monkeypatch.setattr(entries, "_table_targets", lambda *_: np.empty(0, dtype=np.uint64))
    assert exit_code(planted, tmp_path, run) != EXIT_CODE


SWITCH = r"""
#include <stdio.h>
static int a, b;
__attribute__((noinline)) int one(int x) { switch (x) { CASES default: return x ^ 5; } }
__attribute__((noinline)) int loop(const unsigned char *p) {
    int n = 0;
    for (;;) switch (*p++ & 15) { case 0: return n; case 1: n += 3; break; case 2: n *= 5; break; case 3: n -= a; break; case 4: n ^= b; break;
        case 5: n = -n; break; case 6: n <<= 1; break; case 7: n |= 64; break; case 9: n += p[0]; break; case 12: n = one(n & 31); break; }
}
__attribute__((noinline)) int labels(int x) {
    static const void *const where[] = {&&l0, &&l1, &&l2, &&l3};
    static const int distance[] = {&&l0 - &&l0, &&l1 - &&l0, &&l2 - &&l0, &&l3 - &&l0};
    int n = 0;
    goto *where[x & 3];
l0: n += 1; if (n > 40) return n; goto *(&&l0 + distance[x >> 2 & 3]);
l1: n += 10; if (n > 40) return n; goto *where[n & 3];
l2: n = n * 3 + 1; if (n > 40) return n; goto *(&&l0 + distance[n & 3]);
l3: return n + 1000;
}
int (*const table[])(int) = {one, labels, one};
int call(int i, int x) { return table[i](x + 1); }
int main(int c, char **v) {
    a = c + 6; b = c + 8;
    unsigned long sum = 0;
    for (int i = -3; i < 40; i++) {
        unsigned char p[] = {i, i >> 1, i * 7, 12, i * 3, 9, i, 6, 5, 2, 0};
        sum = sum * 31 + one(i); sum = sum * 31 + loop(p); sum = sum * 31 + labels(i & 15); sum = sum * 31 + call((i + 3) % 3, i & 15);
    }
    printf("%lu\n", sum);
    return sum & 63;
}
""".replace("CASES", " ".join(f"case {i}: a += {i}; return x * {i} + b;" for i in range(24) if i not in (7, 11)))


@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2", "-O3", "-Os", "-Og"])
@pytest.mark.parametrize("kind", [["-fPIE", "-pie"], ["-no-pie", "-fno-pie"], ["-fPIE", "-pie", "-Wl,-z,norelro"], ["-fcf-protection=full"], ["-no-pie", "-fno-pie", "-Wl,-z,noseparate-code"], ["-static"]])  # fmt: skip
def test_switches_still_run(build, run, tmp_path, level, kind):
    """Programs with dense switches, computed jumps and tables of functions behave the same when rewritten."""
    path = build(SWITCH, level, *kind)
    stripped = tmp_path / "stripped"
    shutil.copy(path, stripped)
    subprocess.run(["strip", stripped], check=True)
    out = tmp_path / "out"
    out.write_bytes(rewrite(stripped.read_bytes(), RULES).data)
    out.chmod(0o755)
    assert run(out) == run(path)
