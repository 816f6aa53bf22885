"""rbp is taken for an address of the stack only where every path has made it one."""

import re
import shutil

import numpy as np
import pytest
from linked import link

from ruledb.machine import frame
from ruledb.machine.blocks import read_program
from ruledb.machine.elf import load
from ruledb.machine.frame import framed, framed_in

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")

PROLOGUE = "push rbp\nmov rbp, rsp"


class Linked:
    """A program of assembly text whose labels are no symbols: a symbol would be an entry. Each marks its place by an instruction."""

    def __init__(self, folder, text):
        self.numbers = {name: 0x1000 + n for n, name in enumerate(dict.fromkeys(re.findall(r"^\s*(\w+):", text, re.MULTILINE)))}
        for name, number in self.numbers.items():
            text = re.sub(rf"\b{name}\b", f".L{name}", text).replace(f".L{name}:", f".L{name}: mov r15d, {number}\n")
        self.program = link(folder, text)

    def holds(self, label):
        """Whether rbp holds an address of the stack at *label*."""
        listing, wanted = self.program.listing, f"mov r15d, {self.numbers[label]:#x}"
        (index,) = [i for i in range(len(listing)) if str(listing.decoded(i, i + 1)[0].instruction) == wanted]
        return bool(framed(self.program)[index])


def of(folder, body, rest=""):
    """The program of one function around *body*, and more."""
    return Linked(folder, f"function start\n{body}\nend start\n{rest}")


@pytest.mark.parametrize("setting", ["mov rbp, rsp", "lea rbp, [rsp+16]", "lea rbp, [rsp+0x1000]", ".byte 0x48, 0x8b, 0xec"])
def test_a_function_with_a_frame(tmp_path, setting):
    """Behind the instruction that sets rbp from rsp, over branches, loops and calls, until rbp is written again."""
    body = f"""
    a: push rbp
    {setting}
    b: test edi, edi
    je out
    again: dec edi
    call other
    c: jne again
    out: mov eax, [rbp-8]
    d: pop rbp
    e: ret
    """
    program = of(tmp_path, body, "function other\nret\nend other")
    assert {x: program.holds(x) for x in ("a", "b", "again", "c", "out", "d", "e")} == {
        "a": False, "b": True, "again": True, "c": True, "out": True, "d": True, "e": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    "spoiling", ["mov rbp, rdi", "mov ebp, 1", "mov bpl, 1", "xchg rax, rbp", "pop rbp", "leave", "add rbp, 8", "mov rbp, rbp", "enter 8, 0", "cmove rbp, rax"]
)  # fmt: skip
def test_what_writes_rbp_ends_it(tmp_path, spoiling):
    """Whatever may write a part of rbp, however little it changes."""
    program = of(tmp_path, f"{PROLOGUE}\nbefore: {spoiling}\nafter: nop\nret")
    assert (program.holds("before"), program.holds("after")) == (True, False)


@pytest.mark.parametrize("spoiling", ["mov rbp, rdi", "pop rbp"])
def test_one_path_that_spoils_it_is_enough(tmp_path, spoiling):
    """Where two paths meet, both must hold; around a loop, too."""
    joined = of(tmp_path, f"{PROLOGUE}\ntest edi, edi\nje meet\n{spoiling}\nmeet: nop\nret")
    assert not joined.holds("meet")
    loop = of(tmp_path, f"{PROLOGUE}\nagain: dec edi\nje out\n{spoiling}\njmp again\nout: ret")
    assert not loop.holds("again")
    assert not loop.holds("out")


@pytest.mark.parametrize(
    ("body", "rest"),
    [
        (f"{PROLOGUE}\nin: nop\nret", "function other\njmp in\nend other"),  # a jump from another function
        (f"{PROLOGUE}\nin: nop\nret", "function other\ncall in\nret\nend other"),  # a call
        (f"{PROLOGUE}\nin: nop\nret", "function other\nlea rax, [rip+in]\nret\nend other"),  # a pointer in code
        (f"{PROLOGUE}\nin: nop\nret", ".data\n.quad in"),  # a pointer in data
        (f"{PROLOGUE}\nendbr64\nin: nop\nret", ""),  # a mark for indirect jumps
        (f"{PROLOGUE}\nret\nin: nop\nret", ""),  # nothing that is known
        (f"{PROLOGUE}\nin: nop\nret", "jmp in"),  # code outside functions
        (f"{PROLOGUE}\nlea rax, [rip+.Ltable]\nmovsxd rdi, [rax+rdi*4]\nadd rax, rdi\njmp rax\nin: nop\nret", ".section .rodata\n.Ltable: .long in-.Ltable"),
    ],
)  # fmt: skip
def test_where_control_comes_from_elsewhere_nothing_is_known(tmp_path, body, rest):
    """A place that may be entered from unknown code, or from a function without a frame, has none."""
    program = of(tmp_path, body, rest)
    assert not program.holds("in")


@pytest.mark.parametrize("name", ["bits-O0", "vm-O0", "sha256-O2"])
def test_arrays_and_blocks_agree(corpus, name):
    """What holds in a block is the same by arrays and by its instructions."""
    program = read_program(load(corpus / name))
    marks = framed(program)
    for number, first in enumerate(program.cuts.first.tolist()):
        block = program.block(number)
        assert framed_in(block, bool(marks[first])) == tuple(marks[first : first + len(block.instructions)].tolist())
    assert marks.any()


def test_hidden_entries_are_needed(tmp_path, monkeypatch):
    """Without them, a frame is seen where a call leads to."""
    monkeypatch.setattr(frame, "_entered_from_elsewhere", lambda program: np.zeros(len(program.cuts.first), np.bool_))
    assert of(tmp_path, f"{PROLOGUE}\nin: nop\nret", "function other\ncall in\nret\nend other").holds("in")


def test_what_spoils_is_needed(tmp_path, monkeypatch):
    """Without it, a frame is seen behind a write of rbp."""
    monkeypatch.setattr(frame, "family_mask", lambda _: 0)
    assert of(tmp_path, f"{PROLOGUE}\nmov rbp, rdi\nafter: ret").holds("after")
