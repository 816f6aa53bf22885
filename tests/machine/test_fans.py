"""Indirect jumps: tables lead where they lead, and what is not understood closes its function."""

import shutil
import subprocess

import pytest
from linked import link, names

from ruledb.machine.blocks import read_program
from ruledb.machine.elf import load

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None or shutil.which("strip") is None, reason="gcc or strip is not installed")

RELATIVE = "lea rdx, table[rip]\n movsxd rax, dword ptr [rdx+rdi*4]\n add rax, rdx\n jmp rax"
ABSOLUTE = "jmp [table+rdi*8]"
POSITION_INDEPENDENT = "lea rdx, table[rip]\n jmp [rdx+rdi*8]"
UNOPTIMISED = """
 mov eax, dword ptr [rbp-4]
 lea rdx, [rax*4]
 lea rax, table[rip]
 mov eax, dword ptr [rdx+rax]
 cdqe
 lea rdx, table[rip]
 add rax, rdx
 jmp rax
"""
CHECK = "cmp edi, 2\n ja default\n mov edi, edi\n"


def words(kind, *labels, table="table"):
    """A table of that kind of entries."""
    return "\n".join(f".quad {label}" if kind == 8 else f".long {label}-{table}" for label in labels)


def program_of(folder, body, tables, *flags, section='.section .rodata,"a"', more=""):
    """A program whose function `f` is *body* followed by a few labels; stripped, so that these are no symbols; and the symbols."""
    code = f"""
    function start
     call f
     hlt
    end start
    function f
     {body}
    default: mov eax, 1
     ret
    one: mov eax, 2
    two: mov eax, 3
     ret
    three: mov eax, 4
     ret
    end f
    function g
     nop
    within: mov eax, 5
     ret
    end g
    {more}
    {section}
    .balign 8
    {tables}
    """
    whole = link(folder, code, *flags)
    subprocess.run(["strip", "-s", "-o", folder / "stripped", folder / "a"], check=True)
    return read_program(load(folder / "stripped")), names(whole)


def led_to(program, at):
    """The names of what the tables lead to."""
    found = {address: name for name, address in at.items()}
    return {found.get(address, hex(address)) for address in program.fans.target.tolist()}


def reason(program, at):
    """Why `f` is left alone, or None."""
    return program.opaque.get(at["f"])


END = "\n.long 1\n.quad 1"
"""What leads nowhere."""


@pytest.mark.parametrize(
    ("jump", "kind", "flags"),
    [
        (RELATIVE, 4, ()),
        (RELATIVE.replace("add rax, rdx\n jmp rax", "add rdx, rax\n jmp rdx"), 4, ()),
        (UNOPTIMISED, 4, ()),
        (ABSOLUTE, 8, ("-no-pie",)),
        ("mov rax, [table+rdi*8]\n jmp rax", 8, ("-no-pie",)),
        ("notrack jmp [table+rdi*8]", 8, ("-no-pie",)),
        ("mov edx, offset table\n jmp [rdx+rdi*8]", 8, ("-no-pie",)),
        ("movsxd rax, dword ptr [table+rdi*4]\n add rax, offset table\n jmp rax", 4, ("-no-pie",)),
    ],
)
@pytest.mark.parametrize("check", ["", CHECK])
def test_tables_of_compilers_are_read(tmp_path, jump, kind, flags, check):
    """In all forms, with a check of the index or without, a table leads to exactly what stands in it, and its function is open."""
    program, at = program_of(tmp_path, check + jump, "table: " + words(kind, "one", "two", "one") + END, *flags)
    assert led_to(program, at) == {"one", "two"}
    assert reason(program, at) is None
    assert {at["one"], at["two"]} <= program.blocks.keys()
    (jumping,) = {program.functions[program.cuts.function[b]].start for b in program.fans.block.tolist()}
    assert jumping == at["f"]


def test_tables_of_addresses_may_be_relocated(tmp_path):
    """In a position-independent program, entries are what the loader puts there, where the program cannot change them."""
    tables = "table: " + words(8, "one", "three") + END
    program, at = program_of(tmp_path, POSITION_INDEPENDENT, tables, "-Wl,-z,relro", section='.section .data.rel.ro,"aw"')
    assert led_to(program, at) == {"one", "three"}
    assert reason(program, at) is None


def test_tables_are_read_beyond_the_bound(tmp_path):
    """A table ends where its entries lead nowhere, whatever a comparison says: it may be another one's."""
    check = "cmp edi, 1\n ja default\n"
    program, at = program_of(tmp_path, check + RELATIVE, "table: " + words(4, "one", "two", "three") + END)
    assert led_to(program, at) == {"one", "two", "three"}


def test_tables_end_at_the_next_one_by_licence_only(tmp_path):
    """Of two tables next to each other, the first ends at the second where a comparison of the index says so, and only there."""
    second = "cmp esi, 1\n ja default\n mov esi, esi\n jmp [other+rsi*8]"
    tables = "table: " + words(8, "one", "two") + "\nother: " + words(8, "three", "default") + END
    for check, expected in (("cmp edi, 1\n ja more\n mov edi, edi\n", {"one", "two"}), ("", {"one", "two", "three", "default"})):
        program, at = program_of(tmp_path, f"{check}{ABSOLUTE}\nmore: {second}", tables, "-no-pie")
        first = min(program.fans.block.tolist())
        found = {name for name, address in at.items() if address in program.fans.of(first)}
        assert found == expected


@pytest.mark.parametrize(("between", "is_licence"), [("", True), ("mov dword ptr [rsi], 9", False), ("mov ecx, 9", True)])
def test_a_comparison_in_memory_bounds_what_is_not_stored_since(tmp_path, between, is_licence):
    """In unoptimised code, the index is compared in memory; a store in between may change it."""
    check = f"cmp dword ptr [rbp-4], 1\n ja more\n {between}\n mov eax, dword ptr [rbp-4]\n jmp [table+rax*8]\nmore: jmp [other+rdi*8]"
    tables = "table: " + words(8, "one", "two") + "\nother: " + words(8, "three") + END
    program, at = program_of(tmp_path, check, tables, "-no-pie")
    found = {name for name, address in at.items() if address in program.fans.of(min(program.fans.block.tolist()))}
    assert found == ({"one", "two"} if is_licence else {"one", "two", "three"})


def test_a_base_within_a_table_does_not_end_it(tmp_path):
    """Where the bound is higher, a table that seems to start within another one does not end that."""
    second = "jmp [table+rsi*8+8]"
    tables = "table: " + words(8, "one", "two", "three") + END
    program, at = program_of(tmp_path, f"{CHECK.replace('default', 'more')}{ABSOLUTE}\nmore: {second}", tables, "-no-pie")
    assert {name for name, address in at.items() if address in program.fans.of(min(program.fans.block.tolist()))} == {"one", "two", "three"}


def test_too_few_entries_are_not_understood(tmp_path):
    """A table with fewer entries than the comparison allows is read wrongly, so its function stays closed."""
    program, at = program_of(tmp_path, CHECK + RELATIVE, "table: " + words(4, "one", "two") + END)
    assert reason(program, at) == "jump table"
    assert led_to(program, at) == set()


@pytest.mark.parametrize(
    ("jump", "section"),
    [(RELATIVE, ".data"), (RELATIVE, '.section .data.rel.ro,"aw"'), (RELATIVE.replace("rdi*4", "rdi*4+4"), '.section .rodata,"a"')],
    ids=["data", "no relro", "past its start"],
)
def test_writable_tables_are_not_understood(tmp_path, jump, section):
    """What the program can change may lead anywhere; so may what is read from another place than the base."""
    tables = words(4, "one", "two") + "\ntable: " + words(4, "one", "two") + END
    program, at = program_of(tmp_path, jump, tables, "-Wl,-z,norelro", section=section)
    is_shifted = "+4]" in jump
    assert reason(program, at) == (None if is_shifted else "jump table")
    assert led_to(program, at) == ({"two"} if is_shifted else set())


@pytest.mark.parametrize(("jump", "kind"), [(ABSOLUTE, 8), ("movsxd rax, dword ptr [table+rdi*4]\n add rax, offset table\n jmp rax", 4)])
def test_tables_in_code_are_not_understood(tmp_path, jump, kind):
    """A table among the code closes the function."""
    program, at = program_of(tmp_path, jump, "", "-no-pie", more="table: " + words(kind, "one", "two") + "\n.long 1, 1")
    assert reason(program, at) == "table in code"


@pytest.mark.parametrize(("jump", "kind"), [(RELATIVE, 4), (ABSOLUTE, 8)])
def test_tables_of_functions_have_no_known_end(tmp_path, jump, kind):
    """A table without a place in the jump's own function gives no edges: there may be entries that lead to other files."""
    flags = ("-no-pie",) if kind == 8 else ()
    program, at = program_of(tmp_path, jump, "table: " + words(kind, "g", "start") + END, *flags)
    assert led_to(program, at) == set()
    assert reason(program, at) == ("jump table" if kind == 4 else None)


def test_entries_in_doubtful_code_are_not_understood(tmp_path):
    """A table that leads into code without certain instructions is not taken to end there."""
    more = "function odd\n.byte 0x06\nplace: ret\nend odd"
    program, at = program_of(tmp_path, RELATIVE, "table: " + words(4, "one", "place") + END, more=more)
    assert reason(program, at) == "jump table"


@pytest.mark.parametrize(
    ("between", "is_understood"),
    [
        ("", True),
        ("mov ecx, 5", True),
        ("mov rdx, rcx", False),
        ("mov dl, 1", False),
        ("cmovb rdx, rcx", False),
        ("call g\n", False),
        ("test esi, esi\n jne three", True),
    ],
)
def test_the_base_must_reach_the_jump(tmp_path, between, is_understood):
    """A base that may be another one at the jump, or a block that others enter, is not understood."""
    body = f"lea rdx, table[rip]\n {between}\n movsxd rax, dword ptr [rdx+rdi*4]\n add rax, rdx\n jmp rax"
    if between == "call g\n":
        body = body.replace("call g", "call g\n movsxd rdx, edx")
    program, at = program_of(tmp_path, body, "table: " + words(4, "one", "two") + END)
    assert (reason(program, at) is None) == is_understood
    assert led_to(program, at) == ({"one", "two"} if is_understood else set())


LOOP = "lea rbx, table[rip]\nagain: movsxd rax, dword ptr [rbx+rdi*4]\n add rax, rbx\n jmp rax\nback: sub edi, 1\n jnz again\n {more}"


@pytest.mark.parametrize(
    ("more", "is_understood"),
    [
        ("pop rbx\n ret", True),
        ("lea rbx, other[rip]\n jmp again", False),
        ("mov rbx, rsi\n jmp again", False),
        ("xor bl, bl\n jmp again", False),
    ],
)
def test_a_base_set_far_away_must_be_the_only_one(tmp_path, more, is_understood):
    """A base in a loop is known where the function puts nothing else into its register, but for what it restores."""
    tables = "table: " + words(4, "one", "two") + END + "\nother: " + words(4, "three", "two", table="other") + END
    program, at = program_of(tmp_path, LOOP.format(more=more), tables)
    assert (reason(program, at) is None) == is_understood
    assert led_to(program, at) == ({"one", "two"} if is_understood else set())


def test_a_base_set_far_away_is_not_known_to_parts(tmp_path):
    """Where other code jumps into the function, the base may be another one."""
    tables = "table: " + words(4, "one", "two") + END
    part = "function part\n lea rbx, other[rip]\n jmp again\nend part"
    program, at = program_of(tmp_path, LOOP.format(more="pop rbx\n ret"), tables + "\nother: .long 0", more=part)
    assert reason(program, at) == "indirect jump"


@pytest.mark.parametrize(
    ("body", "is_open"),
    [
        ("mov rax, [rdi]\n jmp [rax+16]", True),
        ("jmp rdi", True),
        ("push rbx\n mov rbx, rdi\n call g\n mov rax, rbx\n pop rbx\n jmp rax", True),
        ("call g\n jmp rax", False),
        ("push rbx\n call g\n pop rbx\n jmp rax", True),
        ("push rbx\n call g\n pop rbx\n sub rax, rdx\n jmp rax", False),
        ("push rbx\n call g\n pop rbx\n add rax, rdx\n jmp rax", False),
        ("push rbx\n call g\n pop rbx\n movsxd rcx, dword ptr [rdx+rdi*4]\n sub rdx, rcx\n jmp rdx", False),
        ("jmp fword ptr [rdi]", False),
        ("push rax\n call g\n jmp rax", False),
        ("call g\n sub rsp, 8\n jmp rax", False),
        ("mov rax, [rdi]\n add rax, 4\n jmp rax", False),
        ("mov eax, [rdi]\n jmp rax", False),
        ("movabs rcx, 0x1122334455667788\n mov rax, [rdi]\n jmp rax", False),
        ("lea rcx, f[rip]\n mov rax, [rdi]\n jmp rax", False),
    ],
)
def test_pointers_hide_no_entries(tmp_path, body, is_open):
    """A jump by a pointer opens its function, unless the pointer may be made up from parts; all is live at it."""
    program, at = program_of(tmp_path, body, "")
    assert (reason(program, at) is None) == is_open
    assert led_to(program, at) == set()


def test_pointers_by_distances_from_a_label(tmp_path):
    """In a program at fixed addresses, a function that names a place within a function may add a distance to it."""
    body = "mov eax, offset one\n mov [rsp-8], rax\n jmp [rsp-8]"
    assert reason(*program_of(tmp_path, body, "", "-no-pie")) == "indirect jump"


def test_targets_cut_straight_code(tmp_path):
    """Where a table leads between another table's base and its jump, that base may be another one."""
    body = "jmp [table+rdi*8]\n nop\nfirst: lea rdx, other[rip]\ninto: movsxd rax, dword ptr [rdx+rdi*4]\n add rax, rdx\n jmp rax"
    for entry, expected in (("first", {"one", "first", "three"}), ("into", {"one", "into"})):
        tables = "table: " + words(8, "one", entry) + END + "\nother: " + words(4, "three", table="other") + END
        program, at = program_of(tmp_path, "mov edx, 0\n" + body, tables, "-no-pie")
        assert led_to(program, at) == expected
        assert reason(program, at) == (None if entry == "first" else "indirect jump")
