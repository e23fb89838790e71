"""A tokenizer of C++ sources, and the tree of their brackets: enough to find statements, conditions
and operands in formatted code. It knows no types and no templates."""

import dataclasses
import re

TOKEN = re.compile(r'''
  (?P<space>\s+|//[^\n]*|/\*.*?\*/|^\#(?:[^\n]*\\\n)*[^\n]*)
 |(?P<string>(?:u8|[uUL])?R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
 |(?P<number>\.?\d(?:[eEpP][+-]|'\w|[\w.])*)
 |(?P<name>[A-Za-z_]\w*)
 |(?P<operator><=>|->\*|\.\.\.|<<=|>>=|::|->|\+\+|--|&&|\|\||[-+*/%&|^=!<>]=|<<|.)
''', re.X | re.S | re.M)
CLOSING = {"(": ")", "{": "}", "[": "]"}


@dataclasses.dataclass
class Token:
    kind: str  # string, number, name or operator
    text: str
    begin: int
    end: int


@dataclasses.dataclass
class Group:
    """Brackets and what is between them."""
    text: str  # the opening bracket
    begin: int
    end: int = 0
    inside: list = dataclasses.field(default_factory=list)
    kind: str = "group"


def tree(source):
    """The tokens of the source, those in brackets in groups. ValueError: brackets do not match."""
    root = Group("", 0, len(source))
    open_groups = [root]
    for match in TOKEN.finditer(source):
        kind, text = match.lastgroup, match.group()
        if match.group("space") is not None:
            continue
        if match.group("string") is not None:
            kind = "string"
        if text in CLOSING:
            group = Group(text, match.start())
            open_groups[-1].inside.append(group)
            open_groups.append(group)
        elif kind == "operator" and text in CLOSING.values():
            if CLOSING.get(open_groups[-1].text) != text:
                raise ValueError(f"'{text}' at offset {match.start()} closes nothing")
            open_groups.pop().end = match.end()
        else:
            open_groups[-1].inside.append(Token(kind, text, match.start(), match.end()))
    if len(open_groups) != 1:
        raise ValueError(f"'{open_groups[-1].text}' is not closed")
    return root


def is_operator(node, *texts):
    return node.kind == "operator" and node.text in texts


def is_name(node, *texts):
    return node.kind == "name" and (not texts or node.text in texts)


def is_group(node, text):
    return node.kind == "group" and node.text == text


def statement_end(nodes, begin):
    """The index behind the statement that begins there."""
    first = nodes[begin]
    if is_group(first, "{"):
        return begin + 1
    if is_name(first, "if", "for", "while", "switch"):
        at = begin + 1
        while not is_group(nodes[at], "("):
            at += 1
        at = statement_end(nodes, at + 1)
        if is_name(first, "if") and at < len(nodes) and is_name(nodes[at], "else"):
            at = statement_end(nodes, at + 1)
        return at
    at = begin
    while at < len(nodes) and not is_operator(nodes[at], ";"):
        at += 1
    return min(at + 1, len(nodes))
