"""
Compiled kernels: what an instruction computes, as a machine-code loop over arrays of states.

A kernel belongs to one *form*: an instruction whose registers are all distinct canonical ones (or the implicit
ones that it uses) and whose constant is c0. Which arrays stand for which register is the caller's choice at every call.
Two loops come from the same term:

* ``step``: one state index, all candidates (or all states of one candidate): new register values and flags;
* ``pack``: both fingerprint states at once; writes only the low 32 bits of the result in state 0 and, above
  them, in state 1, which is what a fingerprint mixes.

Arrays: registers ``uint64[n]``; flags ``uint8[n]``, bit i is flag i of `ruledb.machine.registers.FLAGS`.

Outputs that the manual leaves undefined read as bits of *poison*, so that a candidate cannot rely on them.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm
from llvmlite import ir
from pysmt.environment import Environment

from ruledb import search, semantics
from ruledb.machine.canonical import canonicalise, rename
from ruledb.machine.files import write_whole
from ruledb.machine.instruction import Instruction, instruction_text
from ruledb.machine.registers import FLAGS, VIRTUAL
from ruledb.search.lowering import Lowering
from ruledb.semantics.symbolic import initial_state, run
from ruledb.semantics.terms import Terms

__all__ = ["MAX_INPUTS", "MAX_OUTPUTS", "Form", "Kernel", "KernelLibrary", "form_of"]

MAX_INPUTS = 4
MAX_OUTPUTS = 2

_I64, _I8, _VOID = ir.IntType(64), ir.IntType(8), ir.VoidType()
_PTR = ir.PointerType()
STEP = ir.FunctionType(_VOID, [_I64, *[_PTR] * MAX_INPUTS, _PTR, _PTR, _PTR, _I64, *[_PTR] * MAX_OUTPUTS, _PTR])
"""n, inputs, flags, constants, poisons, the stride of these two (0 or 1), outputs, new flags."""
PACK = ir.FunctionType(_VOID, [_I64, *[_PTR, _PTR] * MAX_INPUTS, _PTR, _PTR, _I64, _I64, _I64, _I64, *[_PTR] * MAX_OUTPUTS])
"""n, inputs (state 0, state 1 each), flags 0, 1, constants 0, 1, poisons 0, 1, packed outputs."""


@dataclass(frozen=True, slots=True)
class Form:
    """A kernel's key, and the families it names: *binding*[k] is the caller's family of r<k>."""

    instruction: Instruction
    binding: tuple[int, ...]

    def family(self, canonical: int) -> int:
        """The caller's family of a family of the form."""
        return self.binding[canonical - VIRTUAL] if canonical >= VIRTUAL else canonical


@lru_cache(maxsize=1 << 16)
def form_of(instruction: Instruction) -> Form:
    """The form of *instruction* on hardware registers; its constant may be an expression. A constant 0 stays literal."""
    (plain,) = rename((instruction,), lambda r: r, lambda c: 0 if c == 0 else 2)
    canonical = canonicalise((plain,))
    assert canonical is not None, "one instruction names at most four registers"
    return Form(canonical.instructions[0], canonical.families)


@dataclass(frozen=True, slots=True)
class Kernel:
    """A compiled form: addresses of its entry points, and the families (of the form) and flags that it reads and writes."""

    step: int
    pack: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    reads_flags: bool
    writes_flags: bool


@dataclass(frozen=True, slots=True)
class _Meaning:
    """Terms of one form: new values of the registers and flags that it changes."""

    registers: Mapping[int, Any]
    flags: Mapping[str, Any]
    inputs: tuple[int, ...]
    flag_inputs: frozenset[str]


def _meaning(terms: Terms, instruction: Instruction) -> _Meaning:
    state = run(terms, (instruction,), initial_state(terms), is_pattern=False)
    registers = {f: t for f, t in sorted(state.registers.items()) if not (t.is_symbol() and t.symbol_name() == f"r{f}")}
    flags = {f: t for f, t in state.flags.items() if not (t.is_symbol() and t.symbol_name() == f)}
    names = {name for t in (*registers.values(), *flags.values()) for name in terms.names(t)}
    inputs = tuple(sorted(int(n[1:]) for n in names if n[0] == "r" and n[1:].isdigit()))
    if len(inputs) > MAX_INPUTS or len(registers) > MAX_OUTPUTS:
        raise ValueError(f"{instruction_text(instruction)}: {len(inputs)} inputs, {len(registers)} outputs: more than a kernel has")
    return _Meaning(registers, flags, inputs, frozenset(names & set(FLAGS)))


class _Loop:
    """A function with one counted loop; the body is written between entering and leaving."""

    def __init__(self, module: ir.Module, kind: ir.FunctionType, name: str) -> None:
        self.function = ir.Function(module, kind, name)
        for arg in self.function.args:
            if arg.type == _PTR:
                arg.add_attribute("noalias")  # outputs never are inputs; equal inputs are only read
        entry, self._body, self._end = (self.function.append_basic_block(n) for n in ("entry", "body", "end"))
        self.builder = ir.IRBuilder(entry)
        self.builder.cbranch(self.builder.icmp_unsigned("==", self.function.args[0], _I64(0)), self._end, self._body)
        self.builder.position_at_end(self._body)
        self.index = self.builder.phi(_I64)
        self.index.add_incoming(_I64(0), entry)

    def load(self, pointer: Any, kind: ir.Type = _I64, index: Any | None = None) -> Any:
        where = self.builder.gep(pointer, [self.index if index is None else index], source_etype=kind)
        return self.builder.load(where, typ=kind)

    def store(self, value: Any, pointer: Any) -> None:
        self.builder.store(value, self.builder.gep(pointer, [self.index], source_etype=value.type))

    def close(self) -> None:
        b = self.builder
        following = b.add(self.index, _I64(1))
        self.index.add_incoming(following, b.block)
        b.cbranch(b.icmp_unsigned("<", following, self.function.args[0]), self._body, self._end)
        ir.IRBuilder(self._end).ret_void()


def _lowering(loop: _Loop, inputs: Mapping[int, Any], flags: Any, constant: Any, poison: Any) -> Lowering:
    """Inputs by name: registers and flags from their arrays, undefined values from *poison*."""
    b = loop.builder

    def symbol(name: str, width: int) -> Any:
        if name in FLAGS:
            return b.trunc(b.lshr(flags, _I8(FLAGS.index(name))), ir.IntType(1))
        if name[0] == "r" and name[1:].isdigit():
            return inputs[int(name[1:])]
        value = constant if name == "c0" else poison
        return value if width == value.type.width else b.trunc(value, ir.IntType(width))

    return Lowering(b, symbol)


def _emit_step(module: ir.Module, meaning: _Meaning, name: str) -> None:
    loop = _Loop(module, STEP, name)
    b, args = loop.builder, loop.function.args
    arrays, (flags_in, constants, poisons, stride), outs, flags_out = args[1 : 1 + MAX_INPUTS], args[5:9], args[9:11], args[11]
    inputs = {family: loop.load(arrays[i]) for i, family in enumerate(meaning.inputs)}
    old = loop.load(flags_in, _I8)
    place = b.mul(loop.index, stride)
    constant, poison = (loop.load(a, _I64, place) for a in (constants, poisons))
    lowering = _lowering(loop, inputs, old, constant, poison)
    values = [lowering.lower(t) for t in meaning.registers.values()]
    flags = {f: lowering.lower(t) for f, t in meaning.flags.items()}
    for value, out in zip(values, outs, strict=False):
        loop.store(value, out)
    kept = sum(1 << i for i, f in enumerate(FLAGS) if f not in flags)
    packed = b.and_(old, _I8(kept))
    for f, bit in flags.items():
        packed = b.or_(packed, b.shl(b.zext(bit, _I8), _I8(FLAGS.index(f))))
    loop.store(packed, flags_out)
    loop.close()


def _emit_pack(module: ir.Module, meaning: _Meaning, name: str) -> None:
    loop = _Loop(module, PACK, name)
    b, args = loop.builder, loop.function.args
    halves = []
    for s in (0, 1):
        inputs = {family: loop.load(args[1 + 2 * i + s]) for i, family in enumerate(meaning.inputs)}
        flags = loop.load(args[9 + s], _I8) if meaning.flag_inputs else None
        lowering = _lowering(loop, inputs, flags, args[11 + s], args[13 + s])
        halves.append([lowering.lower(t) for t in meaning.registers.values()])
    for low, high, out in zip(*halves, args[15:17], strict=False):
        loop.store(b.or_(b.and_(low, _I64(0xFFFFFFFF)), b.shl(high, _I64(32))), out)
    loop.close()


_SOURCES = b"\0".join(
    path.read_bytes() for package in (semantics, search) for path in sorted(Path(str(package.__file__)).parent.glob("*.py"))
)
"""The sources as they are imported: read later, they might be those of a version installed meanwhile, whose code does not fit."""


@lru_cache(maxsize=1)
def _code_digest() -> str:
    """Content hash of everything that decides what a kernel's code is, save the form: sources, versions, host."""
    host = f"{llvmlite.__version__} {llvm.llvm_version_info} {llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"
    return hashlib.sha256(host.encode() + b"\0" + _SOURCES).hexdigest()


class KernelLibrary:
    """Compiles forms on first use and keeps the code; objects are cached on disk by form, sources, versions and host."""

    def __init__(self, cache: Path | None = None) -> None:
        """*cache* is a folder for compiled objects, created as needed; None keeps them in memory alone."""
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self._machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3, jit=True
        )
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), self._machine)
        self._cache = cache
        self._kernels: dict[Instruction, Kernel] = {}
        self._terms = Terms(Environment())

    def __getitem__(self, form: Form) -> Kernel:
        return self.kernels([form])[0]

    def kernels(self, forms: Sequence[Form]) -> list[Kernel]:
        """The kernels of *forms*, compiling the missing ones."""
        for form in forms:
            if form.instruction not in self._kernels:
                self._kernels[form.instruction] = self._kernel(form.instruction)
        return [self._kernels[f.instruction] for f in forms]

    def address(self, name: str, build: Callable[[], ir.Module]) -> int:
        """The address of function *name* of the module that *build* makes."""
        self._load(name, lambda: (build(), {}))
        return int(self._engine.get_function_address(name))

    def _kernel(self, instruction: Instruction) -> Kernel:
        name = hashlib.sha256(instruction_text(instruction).encode()).hexdigest()[:16]
        facts = self._load(name, lambda: self._compiled(instruction, name))
        step, pack = (int(self._engine.get_function_address(f"{kind}_{name}")) for kind in ("step", "pack"))
        return Kernel(step, pack, tuple(facts["inputs"]), tuple(facts["outputs"]), facts["reads_flags"], facts["writes_flags"])

    def _compiled(self, instruction: Instruction, name: str) -> tuple[ir.Module, dict[str, Any]]:
        """The module of a form, and what a `Kernel` has to know of it."""
        meaning = _meaning(self._terms, instruction)
        module = ir.Module(name)
        _emit_step(module, meaning, f"step_{name}")
        if meaning.registers:
            _emit_pack(module, meaning, f"pack_{name}")
        return module, {
            "inputs": list(meaning.inputs),
            "outputs": list(meaning.registers),
            "reads_flags": bool(meaning.flag_inputs),
            "writes_flags": bool(meaning.flags),
        }

    def _load(self, name: str, build: Callable[[], tuple[ir.Module, dict[str, Any]]]) -> dict[str, Any]:
        """Make the functions of a module available, from the cache where it has them; return the facts kept with it."""
        stored = self._cache / f"{name}-{_code_digest()[:24]}" if self._cache is not None else None
        if stored is not None and stored.exists():
            head, _, binary = stored.read_bytes().partition(b"\n")
            facts: dict[str, Any] = json.loads(head)
        else:
            module, facts = build()
            binary = self._object(str(module))
            if stored is not None:
                write_whole(stored, json.dumps(facts).encode() + b"\n" + binary)
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(binary))
        self._engine.finalize_object()
        return facts

    def _object(self, source: str) -> bytes:
        module = llvm.parse_assembly(source)
        module.triple, module.data_layout = llvm.get_process_triple(), str(self._engine.target_data)
        module.verify()
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization = options.slp_vectorization = True
        builder = llvm.create_pass_builder(self._machine, options)
        builder.getModulePassManager().run(module, builder)
        return bytes(self._machine.emit_object(module))
