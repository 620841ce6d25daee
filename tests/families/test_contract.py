"""Every family defines the data for the tests of all families, for every protocol."""

from __future__ import annotations

import pytest

from segjudge.evaluation_script.families import FOLDERS, PROTOCOLS, folder_of
from tests import pages
from tests.families.contract import REQUIRED, examples_of, golden_path, merge_rows, module_of
from tests.golden.rows import read_rows


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_family_has_what_all_tests_ask(folder: str) -> None:
    module = module_of(folder)
    missing = [name for name in REQUIRED if not hasattr(module, name)]
    assert not missing, (
        f"tests/families/{folder}/family.py: add these names, which contract.py beside its folder explains"
    )
    protocols = {name for name, rules in PROTOCOLS.items() if folder_of(rules.family) == folder}
    without = protocols - module.PUBLISHED.keys()
    assert not without, f"tests/families/{folder}/family.py: PUBLISHED has no truth for these protocols"


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_family_names_protocols_of_its_own_alone(folder: str) -> None:
    module = module_of(folder)
    named = {*module.PUBLISHED, *module.UPLOADS, *module.REFUSALS, *getattr(module, "FURTHER_UPLOADS", ())}
    named |= {protocol for subject in module.EXAMPLES for protocol in examples_of(folder, subject)}
    named |= {protocol for protocol, _, _ in getattr(module, "SLIPS", {}).values()}
    foreign = {protocol for protocol in named if folder_of(PROTOCOLS[protocol].family) != folder}
    assert not foreign, f"tests/families/{folder}/family.py: move these protocols to the tests of their family"


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_family_has_noted_what_its_examples_show(folder: str) -> None:
    """The noted pages are those of the family's examples."""
    noted = read_rows(golden_path(folder, pages.FILE)).keys()
    assert noted == set(examples_of(folder, "pages")), f"note them: python -m tests.pages {folder}"


def test_every_upload_has_a_refusal() -> None:
    assert merge_rows("REFUSALS").keys() == merge_rows("UPLOADS").keys()


def test_a_family_without_its_module_is_told_which_file_to_write() -> None:
    with pytest.raises(AssertionError, match=r"write tests/families/base/family\.py"):
        module_of("base")
