"""Programs with a JIT of LLVM, ORC or MCJIT, whose listener for perf reads a variable."""

from perfuse.capture.runtime import Preparation, Runtime, Setting, Workspace


def prepare(workspace: Workspace) -> Preparation:
    """Where dumps go; the program itself has to register the listener."""
    setting = Setting("JITDUMPDIR", str(workspace.directory), None, "where LLVM's listener for perf writes its dump")
    return Preparation((setting,))


RUNTIME = Runtime(
    name="llvm",
    title="LLVM's JIT",
    executables=r"lli(-\d+)?|llvm-jitlink(-\d+)?",
    mapped=r"libLLVM.*\.so.*|libllvmlite\.so",
    prepare=prepare,
    is_quiet=True,
    writes="dump",
    advice="",  # many programs map libLLVM and never compile with it
)
