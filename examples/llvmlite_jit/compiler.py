"""Compiles a small subset of Python to LLVM IR with line information: integers, assignment, while, if, return."""

import ast
from pathlib import Path

from llvmlite import ir

I64 = ir.IntType(64)

ARITHMETIC = {
    ast.Add: ir.IRBuilder.add,
    ast.Sub: ir.IRBuilder.sub,
    ast.Mult: ir.IRBuilder.mul,
    ast.FloorDiv: ir.IRBuilder.sdiv,
    ast.Mod: ir.IRBuilder.srem,
}
COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}


def compile_file(path: Path) -> ir.Module:
    """A module with a function `int64(int64...)` for each function of a Python file."""
    module = ir.Module(name=path.name)
    debug = DebugInfo(module, path)
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            FunctionCompiler(module, debug, node)
    return module


class DebugInfo:
    """LLVM's debug metadata, from which the object file gets its lines."""

    def __init__(self, module: ir.Module, path: Path) -> None:
        self.module = module
        names = {"filename": path.name, "directory": str(path.parent.resolve())}
        self.file = module.add_debug_info("DIFile", names)
        unit = {
            "language": ir.DIToken("DW_LANG_Python"),
            "file": self.file,
            "producer": "perfuse example",
            "isOptimized": True,
            "emissionKind": ir.DIToken("FullDebug"),
        }
        self.unit = module.add_debug_info("DICompileUnit", unit, is_distinct=True)
        module.add_named_metadata("llvm.dbg.cu", self.unit)
        for flag, value in (("Debug Info Version", 3), ("Dwarf Version", 4)):
            int32 = ir.IntType(32)
            module.add_named_metadata("llvm.module.flags", [int32(2), flag, int32(value)])

    def function(self, node: ast.FunctionDef) -> ir.DIValue:
        """Metadata of a function."""
        type_ = self.module.add_debug_info("DISubroutineType", {"types": self.module.add_metadata([None])})
        properties = {
            "name": node.name,
            "file": self.file,
            "line": node.lineno,
            "type": type_,
            "unit": self.unit,
            "spFlags": ir.DIToken("DISPFlagDefinition"),
        }
        return self.module.add_debug_info("DISubprogram", properties, is_distinct=True)

    def location(self, node: ast.AST, scope: ir.DIValue) -> ir.DIValue:
        """Metadata of a source location. Python's columns count from 0, LLVM's from 1."""
        fields = {"line": node.lineno, "column": node.col_offset + 1, "scope": scope}
        return self.module.add_debug_info("DILocation", fields)


class FunctionCompiler:
    """Compiles one function. Variables are 64-bit integers on the stack, which LLVM's passes move to registers."""

    def __init__(self, module: ir.Module, debug: DebugInfo, node: ast.FunctionDef) -> None:
        self.debug = debug
        names = [argument.arg for argument in node.args.args]
        self.function = ir.Function(module, ir.FunctionType(I64, [I64] * len(names)), node.name)
        self.scope = debug.function(node)
        self.function.set_metadata("dbg", self.scope)
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.at(node)
        assigned = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        self.slots = {name: self.builder.alloca(I64, name=name) for name in dict.fromkeys(names + assigned)}
        for name, argument in zip(names, self.function.args, strict=True):
            self.builder.store(argument, self.slots[name])
        self.block(node.body)

    def at(self, node: ast.AST) -> None:
        """Sets the source location of the instructions that follow."""
        self.builder.debug_metadata = self.debug.location(node, self.scope)

    def block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            self.at(statement)
            match statement:
                case ast.Assign():
                    self.assign(statement)
                case ast.If():
                    self.branch(statement)
                case ast.While():
                    self.loop(statement)
                case ast.Return():
                    self.builder.ret(self.value(statement.value))
                case _:
                    raise SyntaxError(f"line {statement.lineno}: not supported by this example")

    def assign(self, node: ast.Assign) -> None:
        self.builder.store(self.value(node.value), self.slots[node.targets[0].id])

    def branch(self, node: ast.If) -> None:
        with self.builder.if_else(self.value(node.test)) as (then, otherwise):
            with then:
                self.block(node.body)
            with otherwise:
                self.block(node.orelse)

    def loop(self, node: ast.While) -> None:
        head, body, after = (self.function.append_basic_block(name) for name in ("head", "body", "after"))
        self.builder.branch(head)
        self.builder.position_at_end(head)
        self.builder.cbranch(self.value(node.test), body, after)
        self.builder.position_at_end(body)
        self.block(node.body)
        self.at(node)
        self.builder.branch(head)
        self.builder.position_at_end(after)

    def value(self, node: ast.expr) -> ir.Value:
        match node:
            case ast.Constant(value=int(number)):
                return I64(number)
            case ast.Name(id=name):
                return self.builder.load(self.slots[name], name)
            case ast.BinOp(left=left, op=op, right=right):
                return ARITHMETIC[type(op)](self.builder, self.value(left), self.value(right))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self.builder.icmp_signed(COMPARISONS[type(op)], self.value(left), self.value(right))
        raise SyntaxError(f"line {node.lineno}: {ast.unparse(node)} is not supported by this example")
