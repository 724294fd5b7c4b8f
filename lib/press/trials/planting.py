"""Small errors in the text of a module: where they can be planted, and the text with one in it.

A product, a quotient or a number 1 % too large, a flipped sign, a dropped factor, * for /, an index off by one. Left alone:
refusals and their messages, annotations, decorators, sizes (of chunks and caches; defaults that are whole numbers), numbers
up to 1e-6 and products with them (guards and tolerances), comparisons (for real numbers, < and <= are the same).
"""

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from lib import ROOMS
from lib.press.environment import ROOT
from lib.press.errors import Problem

ONLY = {"data": ("tasks", "image_domains", "front_ends")}  # the rest reads files
WITHOUT_NUMBERS = ("__init__", "pictures", "shapes", "random_graphs")  # the last draws examples, any are as good

SIZES = {"chunk", "rows", "maxsize", "seed", "stacklevel", "tile"}  # arguments that change no number, or only which draw
LAYOUT = {"expand", "reshape", "view", "permute", "repeat", "unflatten", "flatten"}  # -1 there is no number
SPOKEN = {"print", "warn", "tqdm"}
METHODS = {"mul_": "div_", "div_": "mul_", "add_": "sub_", "sub_": "add_", "mul": "div", "div": "mul", "sub": "add"}
PRODUCTS, SUMS = (ast.Mult, ast.Div, ast.MatMult), (ast.Add, ast.Sub)
SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**", ast.MatMult: "@"}
OTHER = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*"}
TOO_SMALL = 1e-6


class PlantingError(Problem):
    """An error cannot be planted; the message says why in one sentence."""


@dataclass(frozen=True)
class Mutant:
    """One planted error: bytes `start` to `end` of the module's text become `text`."""

    module: str  # "linear/theory"
    function: str  # "Streams.uniform"
    line: int
    last: int  # it runs when a line from `line` to `last` runs
    kind: str  # scale, sign, drop, swap, off by one
    start: int
    end: int
    text: str
    before: str  # the expression around it, and what becomes of it
    after: str
    source: str  # its line

    @property
    def change(self) -> str:
        return f"{self.before} → {self.after}"


def modules(root: Path = ROOT) -> list[str]:
    """The modules of the science rooms that hold numbers, in the order of the rooms: "linear/chains", …"""
    rooms = [room for room in ROOMS if room != "press"]
    names = [(room, path.relative_to(root / "lib")) for room in rooms for path in sorted((root / "lib" / room).glob("**/*.py"))]
    known = [(path, path.stem) for room, path in names if path.stem in ONLY.get(room, (path.stem,))]
    return [path.with_suffix("").as_posix() for path, name in known if name not in WITHOUT_NUMBERS]


def chosen(names: list[str], root: Path = ROOT) -> list[str]:
    """The modules that are meant: "linear" is a whole room, "linear/theory", "linear.theory" or its path is one module."""
    known, found = modules(root), []
    for name in names:
        plain = name.removeprefix("lib/").removeprefix("lib.").removesuffix(".py").strip("/").replace(".", "/")
        meant = [module for module in known if plain in (module, module.split("/")[0])]
        if not meant:
            raise PlantingError(f"there are no numbers to plant errors in '{name}'; there are {', '.join(known)}")
        found += meant
    return list(dict.fromkeys(found)) or known


def plant(source: str, mutant: Mutant) -> str:
    """The module's text with the error in it."""
    data = source.encode()
    return (data[: mutant.start] + mutant.text.encode() + data[mutant.end :]).decode()


def find(source: str, module: str) -> list[Mutant]:
    """All errors that can be planted in a module, in the order of its text."""
    found, finder = {}, _Finder(source, module)
    for mutant in finder.found:
        planted = plant(source, mutant)
        if planted not in found and planted != source:
            first, last = finder.around(mutant)  # whole modules would take ten times as long
            compile(finder.data[first : mutant.start] + mutant.text.encode() + finder.data[mutant.end : last], module, "exec")
            found[planted] = mutant
    return sorted(found.values(), key=lambda mutant: (mutant.start, mutant.end, mutant.text))


class _Finder(ast.NodeVisitor):
    """Walks through the functions of a module; `found` is what it found."""

    def __init__(self, source: str, module: str):
        self.module, self.data, self.lines, self.found = module, source.encode(), source.splitlines(), []
        self.starts = [0]
        for line in self.data.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.scope, self.inside, self.counting, self.statement, self.parents = [], 0, 0, None, []
        tree = ast.parse(source)
        self.spans = [self._span(part) for part in tree.body]
        self.visit(tree)

    def around(self, mutant: Mutant) -> tuple[int, int]:
        """Where the function or class begins and ends in which an error is planted."""
        return next((first, last) for first, last in self.spans if first <= mutant.start and mutant.end <= last)

    def visit(self, node: ast.AST) -> None:
        outer = self.statement
        if isinstance(node, ast.stmt):
            self.statement = node
        super().visit(node)
        self.statement = outer

    def generic_visit(self, node: ast.AST) -> None:
        self.parents.append(node)
        super().generic_visit(node)
        self.parents.pop()

    # what is walked into, and what is not

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.scope.append(node.name)
        for part in node.body:
            if isinstance(part, ast.FunctionDef | ast.ClassDef):
                self.visit(part)
        self.scope.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.scope.append(node.name)
        self.inside += 1
        arguments = [*node.args.posonlyargs, *node.args.args]
        defaults = [*zip(arguments[len(arguments) - len(node.args.defaults) :], node.args.defaults, strict=True)]
        defaults += [*zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)]
        for argument, value in defaults:
            if value is not None and argument.arg not in SIZES and not isinstance(_number(value), int):  # a size, as chosen
                self.visit(value)
        for part in node.body:
            self.visit(part)
        self.inside -= 1
        self.scope.pop()

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        refusal = isinstance(node.body[-1], ast.Raise)
        for part in node.orelse if refusal else (node.test, *node.body, *node.orelse):
            self.visit(part)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.visit(node.value)
        self.counting += 1
        self.parents.append(node)
        self.visit(node.slice)
        self.parents.pop()
        self.counting -= 1

    def visit_Call(self, node: ast.Call) -> None:
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name in METHODS and isinstance(node.func, ast.Attribute) and self.inside:
            end = self._at(node.func.end_lineno, node.func.end_col_offset)
            self._add("swap" if "mul" in name or "div" in name else "sign", end - len(name), end, METHODS[name], node)
        self.parents.append(node)
        self.visit(node.func)
        self.counting += name == "range"
        for value in node.args:
            if not (name in LAYOUT and _number(value) == -1):
                self.visit(value)
        for keyword in node.keywords:
            if keyword.arg not in SIZES and name not in SPOKEN:
                self.visit(keyword.value)
        self.counting -= name == "range"
        self.parents.pop()

    def _pass(self, node: ast.AST) -> None:
        """Nothing is planted here."""

    visit_Raise = visit_Assert = visit_JoinedStr = visit_Import = visit_ImportFrom = _pass

    # what is planted

    def visit_BinOp(self, node: ast.BinOp) -> None:
        things = ast.List | ast.Tuple | ast.Set | ast.Dict | ast.ListComp | ast.JoinedStr | ast.Starred
        sides = (node.left, node.right)
        numbers = not any(_tiny(s) for s in sides) and not any(
            isinstance(s, things) or isinstance(getattr(s, "value", None), str) for s in sides
        )
        start, end = self._span(node)
        if self.inside and numbers and type(node.op) in SIGNS:
            if isinstance(node.op, PRODUCTS) and not _rounded(node):
                self._add("scale", start, start, "1.01 * ", node)
            if isinstance(node.op, SUMS):
                self._add("sign", *self._operator(node.left, node.right, node.op), OTHER[type(node.op)], node)
            if isinstance(node.op, ast.Mult | ast.Div):
                self._add("swap", *self._operator(node.left, node.right, node.op), OTHER[type(node.op)], node)
            if isinstance(node.op, ast.Mult | ast.Div | ast.Pow):
                first = _number(node.left) is None or isinstance(node.op, ast.Div)
                kept = self._span(node.left if first else node.right)
                self._add("drop", start, end, f"({self.data[slice(*kept)].decode()})", node)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if self.inside and type(node.op) in OTHER and not isinstance(node.value, ast.List | ast.Tuple | ast.ListComp):
            self._add("sign" if isinstance(node.op, SUMS) else "swap", *self._operator(node.target, node.value, node.op),
                      OTHER[type(node.op)], node)  # fmt: skip
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if _number(node) is not None:
            self._literal(node)
        else:
            if self.inside and isinstance(node.op, ast.USub):
                start, _ = self._span(node)
                self._add("sign", start, start + 1, "+", node)
            self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if _number(node) is not None:
            self._literal(node)

    def _literal(self, node: ast.expr) -> None:
        value, parent = _number(node), self.parents[-1] if self.parents else None
        if not self.inside or _tiny(node):
            return
        operator = parent.op if isinstance(parent, ast.BinOp) else None
        around = parent if isinstance(parent, ast.expr) and not isinstance(parent, ast.Lambda) else node
        if len(self._text(around)) > 70:
            around = node
        start, end = self._span(node)
        if isinstance(operator, PRODUCTS):
            return  # the product is scaled
        whole = operator is not None and (_whole(parent.left) or _whole(parent.right))
        if isinstance(value, float) or (isinstance(operator, SUMS) and value != 0 and not whole):
            self._add("scale", start, end, f"{1.01 * value:.12g}" if value else "0.01", around)
        if isinstance(value, int):
            self._add("off by one", start, end, str(value + 1 if value >= 0 else value - 1), around)

    # where things are

    def _at(self, line: int, column: int) -> int:
        return self.starts[line - 1] + column  # ast counts columns in bytes

    def _span(self, node: ast.AST) -> tuple[int, int]:
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def _text(self, node: ast.AST) -> str:
        return " ".join(self.data[slice(*self._span(node))].decode().split())

    def _operator(self, left: ast.AST, right: ast.AST, operator: ast.operator) -> tuple[int, int]:
        """Where the operator's sign stands between its two sides."""
        start, end = self._span(left)[1], self._span(right)[0]
        between = re.sub(rb"#[^\n]*", lambda comment: b" " * len(comment[0]), self.data[start:end])
        sign = SIGNS[type(operator)].encode()
        return start + between.index(sign), start + between.index(sign) + len(sign)

    def _add(self, kind: str, start: int, end: int, text: str, around: ast.AST) -> None:
        if self.counting and (kind == "scale" or text == "/"):
            return  # an index is a whole number: Python itself would refuse
        first, last = self._span(around)
        after = (self.data[first:start] + text.encode() + self.data[end:last]).decode()
        line = self.data.count(b"\n", 0, start) + 1
        statement = self.statement.lineno if self.statement is not None else line
        body = isinstance(self.statement, ast.FunctionDef)  # a default: it runs when the function does
        lines = (self.statement.body[0].lineno, self.statement.end_lineno) if body else (statement, around.end_lineno)
        self.found.append(
            Mutant(self.module, ".".join(self.scope), lines[0], lines[1], kind, start, end, text,
                   self._text(around), " ".join(after.split()), self.lines[line - 1].strip())
        )  # fmt: skip


def _number(node: ast.AST) -> int | float | None:
    """The value of a literal number, also a negative one."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _number(node.operand)
        return None if value is None else -value
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _tiny(node: ast.AST) -> bool:
    """Whether this is a literal of a guard or a tolerance."""
    return 0 < abs(_number(node) or 0) <= TOO_SMALL


def _whole(node: ast.AST) -> bool:
    """Whether this is a whole number for sure: a length, or something that is rounded down."""
    return (isinstance(node, ast.Call) and getattr(node.func, "id", "") == "len") or (
        isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv)
    )


def _rounded(node: ast.AST) -> bool:
    """Whether a product starts with something that is rounded down: 1.01 * would be inside it."""
    while isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.FloorDiv | ast.Mod):
            return True
        node = node.left
    return False
