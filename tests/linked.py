"""Small programs in assembly."""

import subprocess

from ruledb.machine.blocks import read_program
from ruledb.machine.elf import load


def link(folder, code, *flags):
    """The program of assembly *code*, in which every `function name` … `end name` is a function with a frame."""
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
    (folder / "a.s").write_text(".intel_syntax noprefix\n.text\n" + "\n".join(lines) + '\n.section .note.GNU-stack,""\n')
    subprocess.run(["gcc", "-nostdlib", *flags, "-Wl,-e,start", "-o", folder / "a", folder / "a.s"], check=True)
    return read_program(load(folder / "a"))


def names(program):
    """Name → address of the program's symbols."""
    return {s.name: s.address for s in program.image.symbols}
