"""Run sequences by their kernels: one letter over many states, or a whole sequence over given states."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ruledb.machine.constant import Constant
from ruledb.machine.instruction import Imm, Instruction, Mem
from ruledb.machine.states import Flags, States, Words
from ruledb.search.kernels import MAX_INPUTS, MAX_OUTPUTS, Form, Kernel, KernelLibrary, form_of

__all__ = ["Bound", "Evaluator", "constant_of"]

_STEP = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * (1 + MAX_INPUTS + 4 + MAX_OUTPUTS + 1))


def constant_of(instruction: Instruction) -> Constant:
    """The one constant of *instruction* (no modelled form has two); 0 if it has none."""
    for operand in instruction.operands:
        if isinstance(operand, Imm):
            return operand.value
        if isinstance(operand, Mem):
            return operand.displacement
    return 0


@dataclass(frozen=True, slots=True)
class Bound:
    """A kernel with its registers bound to slots."""

    kernel: Kernel
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    constant: Constant

    @property
    def writes(self) -> int:
        """Bit mask of the slots that are written."""
        return sum(1 << s for s in self.outputs)


class Evaluator:
    """Binds instructions to the slots of *families* and runs them."""

    def __init__(self, library: KernelLibrary, families: Sequence[int]) -> None:
        self.library = library
        self.slots = {family: slot for slot, family in enumerate(families)}

    def bind(self, instructions: Sequence[Instruction]) -> list[Bound]:
        """
        The kernels of *instructions* on this evaluator's slots.

        Raises:
            KeyError: An instruction names a family without a slot.
            UnmodelledForm: An instruction has no semantics.

        """
        forms = [form_of(i) for i in instructions]
        kernels = self.library.kernels(forms)
        return [self._bound(form, kernel, constant_of(i)) for i, form, kernel in zip(instructions, forms, kernels, strict=True)]

    def _bound(self, form: Form, kernel: Kernel, constant: Constant) -> Bound:
        inputs, outputs = (tuple(self.slots[form.family(f)] for f in side) for side in (kernel.inputs, kernel.outputs))
        return Bound(kernel, inputs, outputs, constant)

    def step(self, bound: Bound, inputs: Sequence[Words], flags: Flags, constant: Words, poison: Words) -> tuple[list[Words], Flags]:
        """
        New values of the written slots (in the order of ``bound.outputs``) and new flags, over *n* candidates or states.

        Args:
            inputs: One contiguous ``uint64[n]`` for each slot that is read.
            constant, poison: ``uint64[1]`` for all, or ``uint64[n]``, both alike.

        """
        n = flags.shape[0]
        outputs = [np.empty(n, np.uint64) for _ in bound.outputs]
        new_flags = np.empty(n, np.uint8)
        ins = [a.ctypes.data for a in inputs] + [0] * (MAX_INPUTS - len(inputs))
        outs = [a.ctypes.data for a in outputs] + [0] * (MAX_OUTPUTS - len(outputs))
        stride = int(constant.shape[0] > 1)
        _STEP(bound.kernel.step)(n, *ins, flags.ctypes.data, constant.ctypes.data, poison.ctypes.data, stride, *outs, new_flags.ctypes.data)
        return outputs, new_flags

    def run(self, instructions: Sequence[Instruction], states: States) -> tuple[Words, Flags]:
        """Registers ``uint64[slots, n]`` and flags ``uint8[n]`` after *instructions* on *states*; undefined flags are arbitrary."""
        registers, flags = states.registers.copy(), states.flags
        for bound in self.bind(instructions):
            constant = np.ascontiguousarray(states.constant(bound.constant))
            outputs, flags = self.step(bound, [registers[s] for s in bound.inputs], flags, constant, states.poison)
            for slot, values in zip(bound.outputs, outputs, strict=True):
                registers[slot] = values
        return registers, flags
