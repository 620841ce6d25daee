"""The imports of a script, and which of them may be missing, are determined once for every platform."""

from __future__ import annotations

import pytest

from segjudge.platforms.imports import find_imports


@pytest.mark.parametrize(
    ("text", "imports"),
    [
        ("import numpy.linalg, os", [("numpy", True), ("os", True)]),
        ("from . import a\nfrom .b import c", [("", True), ("", True)]),
        ("with x:\n    import a", [("a", True)]),
        ("class A:\n    import a", [("a", True)]),
        ("def f():\n    import a", [("a", False)]),
        ("if TYPE_CHECKING:\n    from a import b", [("a", False)]),
        ("try:\n    import a\nexcept ImportError:\n    import b", [("a", False), ("b", False)]),
        ("async def f():\n    for x in y:\n        import a", [("a", False)]),
        ("match x:\n    case 1:\n        import a", [("a", False)]),
    ],
)  # fmt: skip
def test_an_import_is_certain_where_nothing_stands_in_its_way(text: str, imports: list[tuple[str, bool]]) -> None:
    assert [(imported.package, imported.is_certain) for imported in find_imports(text)] == imports


def test_imports_come_in_the_order_of_lines_with_what_is_taken_from_them() -> None:
    text = "def f():\n    from ..a import b, c\nimport d"
    assert [(name.line, name.level, name.name, name.members) for name in find_imports(text)] == [
        (2, 2, "a", ("b", "c")),
        (3, 0, "d", ()),
    ]


def test_a_module_of_a_later_python_is_refused() -> None:
    with pytest.raises(SyntaxError):
        find_imports("match x:\n    case 1: pass", (3, 9))
