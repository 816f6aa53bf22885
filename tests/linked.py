"""Programs of assembly text, linked by gcc."""

import subprocess

from ruledb.machine.blocks import read_program
from ruledb.machine.elf import load


def link(folder, code, *flags):
    """The program of assembly *code*: see `assembled`."""
    return read_program(load(assembled(folder, code, *flags)))


def assembled(folder, code, *flags):
    """The linked file of assembly *code*, in which every `function name` … `end name` is a function with an entry in the frame table."""
    lines = []
    for line in code.splitlines():
        word, _, name = line.strip().partition(" ")
        match word:
            case "function":
                lines += [f".globl {name}", f".type {name}, @function", f"{name}: .cfi_startproc"]
            case "end":
                lines += [".cfi_endproc", f".size {name}, .-{name}"]
            case _:
                lines.append(line)
    source = folder / "a.s"
    source.write_text(".intel_syntax noprefix\n.text\n" + "\n".join(lines) + '\n.section .note.GNU-stack,""\n')
    subprocess.run(["gcc", "-nostdlib", *flags, "-Wl,-e,start", "-o", folder / "a", source], check=True)
    return folder / "a"


def names(program):
    """Name → address of the program's symbols."""
    return {s.name: s.address for s in program.image.symbols}
