"""A JIT compiler whose functions have names and lines in perf. See README.md."""

import ctypes
import io
import sys
import time
from pathlib import Path

import llvmlite.binding as llvm
from compiler import compile_file
from elftools.elf.elffile import ELFFile

import perfuse as pf

KERNELS = Path(__file__).with_name("kernels.py")


def main(seconds: float) -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=2)
    module = llvm.parse_assembly(str(compile_file(KERNELS)))
    passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    passes.getModulePassManager().run(module, passes)

    objects: list[bytes] = []
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.set_object_cache(lambda _, data: objects.append(data))
    engine.finalize_object()

    with pf.jitdump.Writer.for_this_process() as writer:
        kernels = []
        for name, size, lines in functions(objects[0]):
            address = engine.get_function_address(name)
            writer.code_load(f"kernels.{name}", address, size=size, lines=lines)
            kernels.append(ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address))
        end = time.process_time() + seconds
        while time.process_time() < end:
            print([kernel(20_000) for kernel in kernels])


def functions(data: bytes) -> list[tuple[str, int, list[pf.jitdump.Line]]]:
    """Name, size and lines of every function of an object file, offsets from the function's start."""
    elf = ELFFile(io.BytesIO(data))
    rows = line_table(elf)
    found = []
    for symbol in elf.get_section_by_name(".symtab").iter_symbols():
        if symbol["st_info"]["type"] == "STT_FUNC":
            start, size = symbol["st_value"], symbol["st_size"]
            lines = [row._replace(offset=row.offset - start) for row in rows if start <= row.offset < start + size]
            found.append((symbol.name, size, lines))
    return found


def line_table(elf: ELFFile) -> list[pf.jitdump.Line]:
    """Rows of the object's .debug_line, offsets from the start of its code; all rows are of one file."""
    dwarf = elf.get_dwarf_info()
    (unit,) = dwarf.iter_CUs()
    states = (entry.state for entry in dwarf.line_program_for_CU(unit).get_entries())
    rows = [state for state in states if state is not None and not state.end_sequence]
    return [pf.jitdump.Line(row.address, str(KERNELS), row.line or 0, row.column) for row in rows]


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 2.0)
