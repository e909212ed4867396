"""A Node script as a Python syntax tree of the same control flow, for the one symbolic executor; it is never run.

What has no counterpart becomes a call of an unknown function with the same operands. Three differences are kept:
``process.argv`` starts with the interpreter, a missing item is ``undefined`` and not an error, ``indexOf`` gives -1.
"""

from __future__ import annotations

import ast
import re

from tree_sitter import Node

from skillruntime.derive.readers.javascript_methods import (
    COMPARISONS,
    FUNCTIONS,
    LIST_METHODS,
    METHODS,
    OPERATORS,
    argv,
    called,
    for_each_call,
    item_of,
    pairs_of,
    slice_of,
)
from skillruntime.derive.readers.javascript_patterns import parameters_of, unpacked, unpacked_object
from skillruntime.derive.readers.javascript_source import literal, nodes_of
from skillruntime.derive.readers.syntax_tree import text_of

__all__ = ["to_python"]

_PROCESS = ("process", "node:process")
_MAIN_MODULE = ("require.main", "import.meta.url", "process.argv[1]")


def to_python(root: Node) -> ast.Module:
    """Return the module that does with its words what the script *root* does."""
    translator = _Translator()
    imports = [ast.Import([ast.alias(name)]) for name in ("sys", "node")]
    module = ast.Module([*imports, *translator.block(root.named_children)], [])
    return ast.fix_missing_locations(module)


class _Translator:
    """The state of one translation: functions without a name that wait to be defined, and the enclosing switches."""

    def __init__(self) -> None:
        self.pending: list[ast.stmt] = []
        self.number = 0
        self.in_switch = False
        self.step: list[ast.stmt] = []
        """What the enclosing ``for`` does after each round, so before each ``continue``."""

    def block(self, nodes: list[Node]) -> list[ast.stmt]:
        """Translate statements; functions that they use are defined before them."""
        done: list[ast.stmt] = []
        for node in nodes:
            outer, self.pending = self.pending, []
            made = self.statement(node)
            done += [*self.pending, *made]
            self.pending = outer
        return done

    def body(self, node: Node | None) -> list[ast.stmt]:
        """Translate the body of a statement, which may be one statement without braces."""
        if node is None:
            return [ast.Pass()]
        nodes = node.named_children if node.type in ("statement_block", "else_clause") else [node]
        return self.block(nodes) or [ast.Pass()]

    def statement(self, node: Node) -> list[ast.stmt]:
        """Translate one statement."""
        made = self._statement(node)
        for each in made:
            for inner in ast.walk(each):
                if "lineno" in getattr(inner, "_attributes", ()) and not hasattr(inner, "lineno"):
                    inner.lineno = inner.end_lineno = node.start_point[0] + 1  # type: ignore[attr-defined]  # all have it
                    inner.col_offset = inner.end_col_offset = 0  # type: ignore[attr-defined]  # all have it
        return made

    def _statement(self, node: Node) -> list[ast.stmt]:
        field = node.child_by_field_name
        match node.type:
            # The modules that are imported are found in the source of the script (`node_script`).
            case "comment" | "empty_statement":
                return []
            # ``import { argv } from "node:process"``; other modules are found in the source (`node_script`).
            case "import_statement":
                source = str(literal(field("source"), {}))
                names = [each for each in nodes_of(node, "import_specifier") if source in _PROCESS]
                return [
                    ast.Assign([ast.Name(text_of(each.child_by_field_name("alias")) or "argv", ast.Store())], argv())
                    for each in names
                    if text_of(each.child_by_field_name("name")) == "argv"
                ]
            case "expression_statement" if node.named_children:
                return self._expression_statement(node.named_children[0])
            case "lexical_declaration" | "variable_declaration":
                return [made for each in node.named_children for made in self._declare(each)]
            # A script that is also a module exports what it runs.
            case "export_statement":
                declared = field("declaration") or field("value")
                return self.statement(declared) if declared is not None else []
            case "function_declaration" | "generator_function_declaration":
                return [self._function(text_of(field("name")), node)]
            # A class is kept, so that words used in its methods are reported as not followed.
            case "class_declaration" | "class":
                methods = [each for each in (field("body") or node).named_children if each.type == "method_definition"]
                made = [self._function(text_of(each.child_by_field_name("name")), each) for each in methods]
                return [ast.ClassDef(text_of(field("name")) or "_class", [], [], [*made, ast.Pass()], [])]
            case "statement_block":
                return self.body(node)
            case "if_statement":
                otherwise = field("alternative")
                test = self.value(field("condition"))
                return [ast.If(test, self.body(field("consequence")), self.body(otherwise) if otherwise else [])]
            case "for_in_statement":
                return [self._for_each(node)]
            # ``for (let i = 0; i < args.length; i++)`` is a ``while`` with the step at the end of its body.
            case "for_statement":
                initial, condition, step = field("initializer"), field("condition"), field("increment")
                before = self.statement(initial) if initial is not None else []
                after = self._expression_statement(step) if step is not None else []
                test = self.value(condition) if condition is not None else ast.Constant(True)
                return [*before, ast.While(test, [*self._loop_body(field("body"), after), *after], [])]
            case "while_statement":
                return [ast.While(self.value(field("condition")), self._loop_body(field("body")), [])]
            # Where no word is there, ``do ... while (args.length)`` does nothing with it once.
            case "do_statement" if "length" in text_of(field("condition")):
                return [ast.While(self.value(field("condition")), self._loop_body(field("body")), [])]
            case "do_statement":
                after = [ast.If(ast.UnaryOp(ast.Not(), self.value(field("condition"))), [ast.Break()], [])]
                return [ast.While(ast.Constant(True), [*self._loop_body(field("body"), after), *after], [])]
            case "switch_statement":
                return self._switch(node)
            case "return_statement":
                return [ast.Return(self.value(node.named_children[0]) if node.named_children else None)]
            # An error that is not caught ends Node with status 1.
            case "throw_statement":
                return [ast.Raise(self.value(node.named_children[0]), None)]
            case "try_statement":
                return [self._try(node)]
            # In a ``switch`` it ends the arm, which the chain of comparisons does by itself.
            case "break_statement":
                return [ast.Pass() if self.in_switch else ast.Break()]
            case "continue_statement":
                return [*self.step, ast.Continue()]
        return [ast.Expr(self._unknown(node))]

    def _expression_statement(self, node: Node) -> list[ast.stmt]:
        field = node.child_by_field_name
        # Python's assignment is a statement, so only this position translates to one.
        if node.type == "assignment_expression":
            return self._assign(field("left"), field("right"))
        if node.type == "augmented_assignment_expression":
            # ``+=`` without its last character.
            operator = OPERATORS.get(text_of(field("operator"))[:-1])
            if operator is not None and (left := field("left")) is not None and left.type == "identifier":
                return [ast.AugAssign(ast.Name(text_of(left), ast.Store()), operator(), self.value(field("right")))]
        if node.type == "update_expression" and (name := field("argument")) is not None and name.type == "identifier":
            operator = ast.Add if "++" in text_of(node) else ast.Sub
            return [ast.AugAssign(ast.Name(text_of(name), ast.Store()), operator(), ast.Constant(1))]
        # ``args.forEach((arg) => {...})`` is a loop over the words.
        if (called := for_each_call(node)) is not None:
            items, function = called
            names = list((function.child_by_field_name("parameters") or function).named_children)
            target = names[0] if names else function.child_by_field_name("parameter")
            body = self._loop_body(function.child_by_field_name("body"))
            return [ast.For(self._target(target), self.value(items), body, [])]
        # ``assert(src, "src is required")`` throws where its first operand is not true.
        if node.type == "call_expression" and text_of(field("function")) in ("assert", "assert.ok"):
            test = ast.UnaryOp(ast.Not(), self.value((field("arguments") or node).named_children[0]))
            return [ast.If(test, [ast.Raise(ast.Name("AssertionError", ast.Load()), None)], [])]
        return [ast.Expr(self.value(node))]

    def _loop_body(self, node: Node | None, step: list[ast.stmt] | None = None) -> list[ast.stmt]:
        outer, self.in_switch, self.step = (self.in_switch, self.step), False, step or []
        made = self.body(node)
        self.in_switch, self.step = outer
        return made

    def _declare(self, node: Node) -> list[ast.stmt]:
        if node.type != "variable_declarator":
            return []
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        # ``const main = async () => {...}``.
        if name is not None and value is not None and value.type in ("arrow_function", "function_expression"):
            return [self._function(text_of(name), value)]
        return self._assign(name, value)

    def _assign(self, target: Node | None, value: Node | None) -> list[ast.stmt]:
        # Python's unpacking fails where items are missing; JavaScript's gives undefined.
        if target is not None and target.type == "array_pattern":
            return unpacked(target, value, self.value, self._target)
        if target is not None and target.type == "object_pattern":
            self.number += 1
            return unpacked_object(target, value, self.value, f"_object_{self.number}")
        # ``out[argv[i].slice(2)] = argv[++i]``: JavaScript evaluates the key before the value.
        if target is not None and target.type == "subscript_expression" and "++" in text_of(value):
            self.number += 1
            key = f"_key_{self.number}"
            owner = self.value(target.child_by_field_name("object"))
            item = ast.Subscript(owner, ast.Name(key, ast.Load()), ast.Store())
            before = ast.Assign([ast.Name(key, ast.Store())], self.value(target.child_by_field_name("index")))
            return [before, ast.Assign([item], self.value(value))]
        # ``process.exitCode = 1`` reports the same failure as ``process.exit(1)``, when the script ends by itself.
        if text_of(target) == "process.exitCode" and text_of(value) != "0":
            return [ast.Expr(called("print", [ast.Constant("usage:")]))]
        return [ast.Assign([self._target(target)], self.value(value) if value is not None else ast.Constant(None))]

    def _target(self, node: Node | None) -> ast.expr:
        if node is not None and node.type in ("identifier", "shorthand_property_identifier_pattern"):
            return ast.Name(text_of(node), ast.Store())
        if node is not None and node.type == "member_expression":
            owner = self.value(node.child_by_field_name("object"))
            return ast.Attribute(owner, text_of(node.child_by_field_name("property")), ast.Store())
        if node is not None and node.type == "subscript_expression":
            index = self.value(node.child_by_field_name("index"))
            return ast.Subscript(self.value(node.child_by_field_name("object")), index, ast.Store())
        self.number += 1
        return ast.Name(f"_unknown_{self.number}", ast.Store())

    def _function(self, name: str, node: Node) -> ast.stmt:
        outer, self.in_switch = self.in_switch, False
        body = node.child_by_field_name("body")
        if body is not None and body.type != "statement_block":
            made: list[ast.stmt] = [ast.Return(self.value(body))]
        else:
            made = self.body(body)
        self.in_switch = outer
        return ast.FunctionDef(
            name or "_function", parameters_of(node, self.value), made, [], lineno=node.start_point[0] + 1
        )

    def _for_each(self, node: Node) -> ast.stmt:
        target = node.child_by_field_name("left")
        body = self._loop_body(node.child_by_field_name("body"))
        return ast.For(self._target(target), self.value(node.child_by_field_name("right")), body, [])

    def _switch(self, node: Node) -> list[ast.stmt]:
        """``switch (x) { case "a": case "b": ...; break; default: ... }`` as a chain of comparisons."""
        outer, self.in_switch = self.in_switch, True
        subject = node.child_by_field_name("value")
        tests: list[Node] = []
        arms: list[tuple[list[Node], list[ast.stmt]]] = []
        otherwise: list[ast.stmt] = []
        for case in (node.child_by_field_name("body") or node).named_children:
            value = case.child_by_field_name("value")
            body = self.block([each for each in case.named_children if each != value])
            if case.type == "switch_default":
                otherwise = body
            elif case.type == "switch_case" and value is not None:
                tests.append(value)
                if body:
                    arms.append((tests, body))
                    tests = []
        self.in_switch = outer
        made = otherwise
        for values, body in reversed(arms):
            compared: list[ast.expr] = [
                ast.Compare(self.value(subject), [ast.Eq()], [self.value(each)]) for each in values
            ]
            test = compared[0] if len(compared) == 1 else ast.BoolOp(ast.Or(), compared)
            made = [ast.If(test, body, made)]
        return made

    def _try(self, node: Node) -> ast.stmt:
        handler = node.child_by_field_name("handler")
        caught = handler.child_by_field_name("body") if handler is not None else None
        handlers = [ast.ExceptHandler(ast.Name("Exception", ast.Load()), None, self.body(caught))] if handler else []
        final = node.child_by_field_name("finalizer")
        last = self.body(final.child_by_field_name("body")) if final is not None else []
        return ast.Try(self.body(node.child_by_field_name("body")), handlers, [], last)

    def value(self, node: Node | None) -> ast.expr:
        """Translate one expression."""
        if node is None:
            return ast.Constant(None)
        field = node.child_by_field_name
        shown = text_of(node)
        match node.type:
            case "parenthesized_expression" | "await_expression" | "spread_element" if node.named_children:
                inner = self.value(node.named_children[-1])
                return ast.Starred(inner, ast.Load()) if node.type == "spread_element" else inner
            case "string" | "number" | "true" | "false" | "null" | "undefined":
                return ast.Constant(literal(node, {}))
            case "identifier":
                return ast.Constant(None) if shown == "undefined" else ast.Name(shown, ast.Load())
            # A template is an f-string.
            # ``word.replace(/^--/, "")``: a pattern of dashes says that the word is a flag.
            case "regex" if (dashes := re.match(r"/\^?(-+)", text_of(node))) is not None:
                return ast.Constant(dashes[1])
            case "template_string":
                parts = [each for each in node.named_children if each.type != "escape_sequence"]
                return ast.JoinedStr([self._text_part(each) for each in parts])
            case "array":
                return ast.List(
                    [self.value(each) for each in node.named_children if each.type != "comment"], ast.Load()
                )
            case "object":
                return self._object(node)
            case "binary_expression":
                return self._binary(node)
            case "unary_expression" if shown.startswith("!"):
                return ast.UnaryOp(ast.Not(), self.value(node.named_children[-1]))
            case "unary_expression" if shown.startswith("-"):
                return ast.UnaryOp(ast.USub(), self.value(node.named_children[-1]))
            case "ternary_expression":
                sides = [self.value(field(name)) for name in ("condition", "consequence", "alternative")]
                return ast.IfExp(*sides)
            case "assignment_expression" if (left := field("left")) is not None and left.type == "identifier":
                return ast.NamedExpr(ast.Name(text_of(left), ast.Store()), self.value(field("right")))
            # ``args[++i]`` and ``args[i++]``: the second is the value before the step.
            case "update_expression" if (left := field("argument")) is not None and left.type == "identifier":
                one = ast.Constant(1 if "++" in shown else -1)
                stepped = ast.BinOp(ast.Name(text_of(left), ast.Load()), ast.Add(), one)
                made = ast.NamedExpr(ast.Name(text_of(left), ast.Store()), stepped)
                return made if shown[0] in "+-" else ast.BinOp(made, ast.Sub(), one)
            case "member_expression":
                return self._member(node)
            case "subscript_expression":
                return self._subscript(node)
            case "arrow_function" | "function_expression":
                return self._anonymous(node)
            case "call_expression":
                return self._call(node)
            # ``new Error(...)``, ``new Set(args)``.
            case "new_expression" if shown.startswith("new Map(") and (pairs := pairs_of(field("arguments"))):
                return ast.Dict([self.value(key) for key, _ in pairs], [self.value(value) for _, value in pairs])
            case "new_expression" if shown.startswith("new Set("):
                return called("list", self._arguments(field("arguments")))
            case "new_expression":
                # The class is unknown, so its arguments count as used.
                name = ast.Name(text_of(field("constructor")), ast.Load())
                return ast.Call(name, self._arguments(field("arguments")), [])
        return self._unknown(node)

    def _unknown(self, node: Node) -> ast.expr:
        """Return a call of a function that does not exist, with the operands of *node*."""
        return ast.Call(ast.Name(f"_{node.type}", ast.Load()), [self.value(each) for each in node.named_children], [])

    def _text_part(self, node: Node) -> ast.expr:
        if node.type == "template_substitution" and node.named_children:
            return ast.FormattedValue(self.value(node.named_children[0]), -1)
        return ast.Constant(text_of(node))

    def _object(self, node: Node) -> ast.expr:
        keys: list[ast.expr | None] = []
        values: list[ast.expr] = []
        for each in node.named_children:
            if each.type == "pair":
                key = each.child_by_field_name("key")
                keys.append(ast.Constant(text_of(key).strip("'\"")))
                values.append(self.value(each.child_by_field_name("value")))
            elif each.type == "shorthand_property_identifier":
                keys.append(ast.Constant(text_of(each)))
                values.append(ast.Name(text_of(each), ast.Load()))
            elif each.type == "method_definition":
                keys.append(ast.Constant(text_of(each.child_by_field_name("name"))))
                values.append(self._anonymous(each))
        return ast.Dict(keys, values)

    def _anonymous(self, node: Node) -> ast.expr:
        body = node.child_by_field_name("body")
        if body is not None and body.type != "statement_block":
            return ast.Lambda(parameters_of(node, self.value), self.value(body))
        self.number += 1
        name = f"_function_{self.number}"
        self.pending.append(self._function(name, node))
        return ast.Name(name, ast.Load())

    def _binary(self, node: Node) -> ast.expr:
        if any(each in text_of(node) for each in _MAIN_MODULE):
            return ast.Constant(True)  # ``if (require.main === module)``: the file is run as a script
        operator = text_of(node.child_by_field_name("operator"))
        sides = [node.child_by_field_name(side) for side in ("left", "right")]
        if operator in ("===", "==", "!==", "!=") and text_of(sides[0]).startswith("typeof "):
            # ``typeof word === "undefined"``; a word that is there is a string, and a command a function.
            kind = text_of(sides[1]).strip("\"'`")
            if sides[0] is not None and kind in ("undefined", "string", "function"):
                is_missing = (operator[0] == "=") is (kind == "undefined")
                test = ast.Eq() if is_missing else ast.NotEq()
                return ast.Compare(self.value(sides[0].named_children[-1]), [test], [ast.Constant(None)])
        left, right = (self.value(each) for each in sides)
        # ``??`` differs for "" and 0 only, which a word is not.
        if operator in ("||", "??"):
            return ast.BoolOp(ast.Or(), [left, right])
        if operator == "&&":
            return ast.BoolOp(ast.And(), [left, right])
        # ``==`` converts, but a word is compared with literals of its own type in practice.
        if operator in COMPARISONS:
            return ast.Compare(left, [COMPARISONS[operator]()], [right])
        if operator in OPERATORS:
            return ast.BinOp(left, OPERATORS[operator](), right)
        return ast.Call(ast.Name("_operator", ast.Load()), [left, right], [])

    def _member(self, node: Node) -> ast.expr:
        owner, name = node.child_by_field_name("object"), text_of(node.child_by_field_name("property"))
        if re.fullmatch(r"(?:process|require\([\"'](?:node:)?process[\"']\)|Bun)\.argv", text_of(node)):
            return argv()
        # Deno leaves its own name and the script's out.
        if text_of(node) == "Deno.args":
            return slice_of(argv(), [ast.Constant(2)])
        # Of a list or a text.
        if name == "length":
            return ast.Call(ast.Name("len", ast.Load()), [self.value(owner)], [])
        return ast.Attribute(self.value(owner), name, ast.Load())

    def _subscript(self, node: Node) -> ast.expr:
        owner, index = node.child_by_field_name("object"), node.child_by_field_name("index")
        number = literal(index, {})
        # ``args[0]``: undefined where it is missing.
        if isinstance(number, int):
            return item_of(self.value(owner), number)
        return called("node.item", [self.value(owner), self.value(index)])

    def _arguments(self, node: Node | None) -> list[ast.expr]:
        return [self.value(each) for each in node.named_children if each.type != "comment"] if node is not None else []

    def _call(self, node: Node) -> ast.expr:
        function = node.child_by_field_name("function")
        shown = text_of(function)
        given = self._arguments(node.child_by_field_name("arguments"))
        # All of them print; which stream makes no difference to what is accepted.
        if shown.startswith(("console.", "process.stdout.", "process.stderr.")):
            return called("print", given)
        if shown == "Object.hasOwn" and len(given) == 2:
            return ast.Compare(given[1], [ast.In()], [given[0]])
        if shown in FUNCTIONS:  # a second argument is the base of the number, or the next part of a path
            return called(FUNCTIONS[shown], given[:1])
        if function is not None and function.type == "member_expression":
            owner = function.child_by_field_name("object")
            name = text_of(function.child_by_field_name("property"))
            # ``process.argv[2]?.trim()``: undefined stays undefined.
            if function.child_by_field_name("optional_chain") is not None:
                absent = ast.Compare(self.value(owner), [ast.Is()], [ast.Constant(None)])
                return ast.IfExp(absent, ast.Constant(None), self._method(self.value(owner), name, given))
            if name in ("catch", "finally", "then") and owner is not None and owner.type == "call_expression":
                return self.value(owner)  # ``main().catch(report)``
            return self._method(self.value(owner), name, given)
        return ast.Call(self.value(function), given, [])

    def _method(self, owner: ast.expr, name: str, given: list[ast.expr]) -> ast.expr:
        known = LIST_METHODS.get(name)
        if known is not None and (made := known(owner, given)) is not None:
            return made
        return ast.Call(ast.Attribute(owner, METHODS.get(name, name), ast.Load()), given, [])
