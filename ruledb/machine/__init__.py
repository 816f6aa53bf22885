"""What code is: registers, instructions, their text and bytes, ELF files, blocks, liveness, windows, rules."""
