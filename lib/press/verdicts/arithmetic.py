"""Formulas in claims: 'sqrt(2/3)', '8.5*2'. Only floats, so that no formula can take long; only a finite number counts."""

import ast
import math
import operator

from lib.press.errors import ClaimError

LONGEST = 200  # characters
FUNCTIONS = {"sqrt": math.sqrt, "log": math.log, "exp": math.exp}
OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: math.pow,  # has no complex numbers, where ** has
    ast.USub: operator.neg,
}


def arithmetic(text: str) -> float:
    """The value of a simple formula; nothing else is evaluated. A ClaimError says why there is no value."""

    def value(node) -> float:
        match node:
            case ast.Expression():
                return value(node.body)
            case ast.Constant(value=int() | float() as constant) if not isinstance(constant, bool):
                return float(constant)
            case ast.BinOp() if type(node.op) in OPERATORS:
                return OPERATORS[type(node.op)](value(node.left), value(node.right))
            case ast.UnaryOp(op=ast.USub()):
                return -value(node.operand)
            case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in FUNCTIONS:
                return FUNCTIONS[name](value(argument))
            case ast.Name(id="pi"):
                return math.pi
        raise ClaimError(f"'{text}' is not a number or a simple formula")

    text = text.strip()
    if len(text) > LONGEST:
        raise ClaimError(f"'{text[:40]} …' is too long for a simple formula")
    try:
        found = value(ast.parse(text, mode="eval"))
    except (SyntaxError, RecursionError, MemoryError):
        raise ClaimError(f"'{text}' is not a number or a simple formula") from None
    except (ArithmeticError, ValueError):  # 1/0, exp(1e9), sqrt(-1), a null character
        found = math.nan
    if not math.isfinite(found):
        raise ClaimError(f"'{text}' has no finite value")
    return found
