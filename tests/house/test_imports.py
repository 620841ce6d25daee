"""An import defines names: it changes nothing of the process, and uses no private name of another package."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.house.test_architecture import FILES, ROOT, nodes_of, tree_of

#: The files that put modules in place of others, because a user asks for it or because they play EvalAI's worker.
STAND_INS = {
    "segjudge/davisinteractive/__init__.py",
    "segjudge/platforms/evalai/bundle/scorers.py",
    "segjudge/platforms/evalai/hosted_worker/program.py",
}
#: Names with an underscore that are documented: of named tuples, and the end of a forked process.
DOCUMENTED = {"_replace", "_asdict", "_fields", "_make", "_field_defaults", "_exit"}
#: The statements with an effect outside their module, by file: plug-in families, Gymnasium's registry, the stand-in.
EFFECTS = {
    "segjudge/__init__.py": {"sys.meta_path.append(_PluginFinder)"},
    "segjudge/code_upload/environments/__init__.py": {"gymnasium.register"},
}
#: The modules whose functions read or change the process, and those of their functions that only read.
PROCESS = {"atexit", "codecs", "gc", "locale", "logging", "os", "signal", "socket", "subprocess", "sys", "warnings"}
READS = ("logging.getLogger", "os.cpu_count", "os.getpid", "os.path", "os.uname")


def _name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and not name.endswith("_")


def _own_names() -> set[str]:
    """Return the private names that our modules define."""
    names = set[str]()
    for path in FILES.values():
        for node in nodes_of(path):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                names.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                names.add(node.attr)
    return names


def test_no_private_name_of_another_package_is_used() -> None:
    own = _own_names() | DOCUMENTED
    faults = []
    for path in FILES.values():
        for node in nodes_of(path):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [part for alias in node.names for part in alias.name.split(".")]
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module != "__future__":
                names = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
            elif isinstance(node, ast.Attribute) and node.attr not in own:
                names = [node.attr]
            elif (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in {"getattr", "hasattr", "setattr"}
            ):
                word = node.args[1]
                names = [word.value] if isinstance(word, ast.Constant) and word.value not in own else []
            faults += [f"{_name_of(path)}:{node.lineno} {name}" for name in names if _is_private(name)]  # type: ignore[attr-defined]
    assert faults == []


def test_no_module_puts_another_in_place_of_one() -> None:
    faults = []
    for path in FILES.values():
        for node in nodes_of(path):
            written = isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load)
            called = isinstance(node, ast.Attribute) and node.attr in {"clear", "pop", "setdefault", "update"}
            value = node.value if (written or called) else None  # type: ignore[attr-defined]
            if isinstance(value, ast.Attribute) and ast.unparse(value) == "sys.modules":
                faults.append(_name_of(path))
    assert set(faults) <= STAND_INS


def _list_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that an import runs."""
    for node in body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'":
            continue
        if isinstance(node, (ast.If, ast.Try)):
            handlers = node.handlers if isinstance(node, ast.Try) else []
            yield from _list_statements([*node.body, *node.orelse, *(each for one in handlers for each in one.body)])
        elif isinstance(node, (ast.For, ast.With, ast.While)):
            yield from _list_statements(node.body)
        else:
            yield node


def _list_calls(node: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls that an import makes: none of a function's body."""
    inner: list[ast.AST] = list(ast.iter_child_nodes(node))
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        inner = [*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)]
    elif isinstance(node, ast.Lambda):
        inner = []
    if isinstance(node, ast.Call):
        yield node
    for child in inner:
        yield from _list_calls(child)


def _foreign_names(path: Path) -> dict[str, str]:
    """Return what a module imports from others' packages, by its name here."""
    names: dict[str, str] = {}
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            names |= {(alias.asname or alias.name).partition(".")[0]: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return {name: origin for name, origin in names.items() if origin.partition(".")[0] != "segjudge"}


def test_no_import_has_effects() -> None:
    faults = []
    for path in FILES.values():
        if _name_of(path) in STAND_INS:
            continue
        tree, allowed = tree_of(path), EFFECTS.get(_name_of(path), set())
        foreign = _foreign_names(path)
        for statement in _list_statements(tree.body):
            for call in _list_calls(statement):
                function = ast.unparse(call.func)
                root, _, rest = function.partition(".")
                origin = f"{foreign[root]}.{rest}".rstrip(".") if root in foreign else ""
                is_alone = isinstance(statement, ast.Expr) and statement.value is call and origin
                changes = origin.partition(".")[0] in PROCESS and not origin.startswith(READS)
                if (is_alone or changes) and not {function, ast.unparse(call)} & allowed:
                    faults.append(f"{_name_of(path)}:{call.lineno} {function}")
            targets = statement.targets if isinstance(statement, (ast.Assign, ast.Delete)) else []
            faults += [
                f"{_name_of(path)}:{target.lineno} {ast.unparse(target)}"
                for target in targets
                if isinstance(target, (ast.Attribute, ast.Subscript))
                and ast.unparse(target).partition(".")[0] in foreign
            ]
    assert faults == []
