"""The imports of a script, and which of them may be missing, are determined once for every platform."""

from __future__ import annotations

from pathlib import Path

import pytest

from segjudge.platforms import imports
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


def test_modules_are_parsed_once_for_each_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    texts = {"new.py": "import numpy\nmatch x:\n    case 1:\n        from . import scipy", "old.py": "import a.b"}
    newer = imports.parse_modules(texts, (3, 12))
    older = imports.parse_modules(texts, (3, 9))
    assert [row.package for row in newer["new.py"].imports] == ["numpy", ""]
    assert newer["new.py"].imports[1].members == ("scipy",)
    assert newer["old.py"] == older["old.py"]
    assert "Pattern matching is only supported in Python 3.10" in older["new.py"].error
    monkeypatch.setattr(imports, "_parse", None)
    assert imports.parse_modules(texts, (3, 12)) == newer
    assert imports.parse_modules(texts, (3, 9)) == older
