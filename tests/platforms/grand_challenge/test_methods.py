"""Evaluation methods give the noted input, output and messages, which only an intended change renews."""

from __future__ import annotations

import pytest

from tests.calls import hold

from . import methods


@pytest.mark.long
def test_methods_score_and_are_built_as_noted() -> None:
    hold(methods.write_text(), methods.FILE)
