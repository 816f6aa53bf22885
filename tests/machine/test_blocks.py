"""Programs as blocks: entries, edges, and functions that may not be touched."""

import shutil
import subprocess

import pytest
from linked import link, names

from ruledb.machine.blocks import read_program
from ruledb.machine.elf import load

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")


def opaque(program):
    """Name → reason of the opaque functions."""
    return {name: program.opaque[address] for name, address in names(program).items() if address in program.opaque}


def test_cuts_at_targets_and_transfers(tmp_path):
    """A block ends at a jump, call or return and before a target or label; its successors are where control goes."""
    program = link(
        tmp_path,
        """
        function start
         xor eax, eax
        again: add eax, 1
         cmp eax, 5
         jne again
         call leaf
         mov edi, eax
        probe: syscall
         hlt
        end start
        function leaf
         ret
        end leaf
        """,
    )
    at = names(program)
    blocks = [b for b in program.open_blocks() if b.function == at["start"]]
    texts = [[d.instruction.mnemonic for d in b.instructions] for b in blocks]
    assert texts == [["xor"], ["add", "cmp", "jne"], ["call"], ["mov"], ["syscall", "hlt"]]
    loop = blocks[1]
    assert (loop.start, set(loop.successors)) == (at["again"], {at["again"], loop.end})
    assert blocks[2].successors == (blocks[3].start,)
    assert (blocks[3].successors, blocks[4].successors) == ((blocks[4].start,), ())
    assert program.block_at(at["leaf"]).last.instruction.mnemonic == "ret"
    assert program.block_at(at["probe"]) == blocks[4]
    assert not program.opaque


@pytest.mark.parametrize("flags", [("-no-pie", "-static"), ("-static-pie",)], ids=" ".join)
def test_addresses_that_are_taken_are_entries(tmp_path, flags):
    """`endbr64`, addresses in data, and those that an instruction takes, start blocks."""
    immediate = "mov ecx, offset fourth" if "-no-pie" in flags else "lea rcx, fourth[rip]"
    program = link(
        tmp_path,
        f"""
        function start
         lea rax, first[rip]
         {immediate}
         nop
        first: nop
        second: endbr64
         nop
        third: nop
         nop
        fourth: nop
         hlt
        end start
        .data
        .quad third
        """,
        *flags,
    )
    at = names(program)
    assert {at[name] for name in ("first", "second", "third", "fourth")} <= program.blocks.keys()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("add rax, rcx\n jmp rax", "indirect jump"),
        ("lea rcx, table[rip]\n movsxd rax, [rcx+rax*4]\n add rax, rcx\n jmp rax", "jump table"),
        (".byte 0x06\n ret", "undecodable"),
        ("jmp skip+1\nskip: lock add [rax], ecx\n ret", "branch into instruction"),
        ("mov eax, value[rip]\n ret\nvalue: .long 0x90909090", "data in code"),
        (".cfi_signal_frame\n ret", "signal frame"),
        (".cfi_lsda 0x1b, table\n ret", "lsda"),
        ("lea rax, inside[rip+1]\ninside: mov eax, 1\n ret", "branch into instruction"),
    ],
)
def test_functions_that_may_not_be_touched(tmp_path, body, reason):
    """A function whose control flow is uncertain is opaque, with its reason; others are not."""
    program = link(
        tmp_path,
        f"""
        function start
         call odd
         hlt
        end start
        function odd
         {body}
        end odd
        .data
        table: .quad 0
        """,
        "-no-pie",
    )
    assert opaque(program) == {"odd": reason}
    assert program.opaque_counts()[reason] == 1
    assert all(b.function == names(program)["start"] for b in program.open_blocks())
    has_blocks = any(b.function == names(program)["odd"] for b in program.blocks.values())
    assert has_blocks == (reason in ("indirect jump", "jump table", "signal frame", "lsda"))


def test_parts_of_one_function_are_opaque_together(tmp_path):
    """Functions joined by a conditional jump or a jump to a middle share their fate; a tail call does not join."""
    program = link(
        tmp_path,
        """
        function start
         jmp hot
        end start
        function hot
         test eax, eax
         je cold
        back: jmp rax
        end hot
        function cold
         inc eax
         jmp more
        end cold
        function other
         nop
        more: jmp alone
        end other
        function alone
         ret
        end alone
        """,
    )
    assert opaque(program) == dict.fromkeys(("hot", "cold", "other"), "indirect jump")
    assert program.block_at(names(program)["more"]).start == names(program)["more"]


def test_targets_in_code_outside_functions_are_entries(tmp_path):
    """Code that no function holds is scanned: its jumps make entries, its calls are remembered."""
    program = link(
        tmp_path,
        """
        loose: jmp middle
         call start
         ret
        function start
         nop
        middle: hlt
        end start
        """,
    )
    at = names(program)
    assert at["middle"] in program.blocks
    assert at["start"] in program.called_from_outside
    assert program.block_at(at["loose"]) is None


def test_calls_to_a_middle_are_remembered(tmp_path):
    """A function that is called behind its start is marked, since its returns have more than one meaning."""
    program = link(
        tmp_path,
        """
        function start
         call thunk
         hlt
        end start
        function thunk
         call inner
        stop: jmp stop
        inner: mov [rsp], rax
         ret
        end thunk
        """,
    )
    assert program.entered_by_call == {names(program)["thunk"]}


@pytest.mark.parametrize("flags", [(), ("-no-pie", "-fno-pie"), ("-fcf-protection=full",), ("-fno-plt",)], ids=" ".join)
def test_linkage_stubs_have_names(tmp_path, flags):
    """Calls through a stub or a loader's slot know the outside function's name, with and without a section table."""
    (tmp_path / "p.c").write_text("#include <stdio.h>\nint main(int n, char **v) { puts(v[0]); return puts(v[n - 1]); }\n")
    subprocess.run(["gcc", "-O2", *flags, "-o", tmp_path / "p", tmp_path / "p.c"], check=True)
    data = (tmp_path / "p").read_bytes()
    for content in (data, data[:0x28] + b"\0" * 8 + data[0x30:0x3C] + b"\0" * 4 + data[0x40:]):
        (tmp_path / "q").write_bytes(content)
        program = read_program(load(tmp_path / "q"))
        called = {program.external_name(b.last) for b in program.open_blocks()}
        assert "puts" in called


def test_object_files_hide_what_the_linker_fills_in(tmp_path):
    """In an object file, a call under a relocation has the target that this file gives it, or none."""
    (tmp_path / "p.c").write_text(
        'int puts(const char *);\n__attribute__((noinline)) int f(int n) { return n * 3; }\nint g(int n) { puts(""); return f(n) + 1; }\n'
    )
    subprocess.run(["gcc", "-O2", "-c", "-o", tmp_path / "p.o", tmp_path / "p.c"], check=True)
    program = read_program(load(tmp_path / "p.o"))
    at = names(program)
    calls = [b.last.target for b in program.blocks.values() if b.last.instruction.mnemonic == "call"]
    assert sorted(calls, key=str) == sorted([None, at["f"]], key=str)


def test_an_image_without_code_is_an_empty_program(tmp_path):
    """Data alone makes a program without functions and blocks."""
    (tmp_path / "p.c").write_text("int x = 5;\n")
    subprocess.run(["gcc", "-c", "-o", tmp_path / "p.o", tmp_path / "p.c"], check=True)
    program = read_program(load(tmp_path / "p.o"))
    assert (program.functions, dict(program.blocks), list(program.open_blocks())) == ((), {}, [])
    assert program.block_at(0) is None


def test_a_table_of_relative_jumps_leads_into_other_functions(tmp_path):
    """What a table points at is an entry, also in a function that nothing else leads to."""
    program = link(
        tmp_path,
        """
        function start
         lea rdx, [rip+.Ltable]
         movsxd rax, [rdx+rdi*4]
         add rax, rdx
         jmp rax
        end start
        function cold
         mov edi, esi
        .Linside:
         add edi, edx
         hlt
        end cold
        .section .rodata
        .balign 4
        .Ltable:
         .long cold - .Ltable
         .long .Linside - .Ltable
         .long 1
        """,
    )
    at = names(program)
    cold = [b for b in program.open_blocks() if b.function == at["cold"]]
    assert [[d.instruction.mnemonic for d in b.instructions] for b in cold] == [["mov"], ["add", "hlt"]]


def test_a_function_with_a_pointer_to_its_middle_is_left_alone(tmp_path):
    """What is pointed at may be data that looks like code."""
    program = link(
        tmp_path,
        """
        function start
         lea rdi, [rip+.Lblob]
         call leaf
         hlt
        .Lblob:
         mov eax, 0
         ret
        end start
        function leaf
         ret
        end leaf
        """,
    )
    assert program.opaque == {names(program)["start"]: "pointed into"}
