"""Equivalence queries, solvers, and the emulator as independent witness."""
