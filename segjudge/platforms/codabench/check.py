"""`segjudge check --platform codabench`: all reasons why Codabench refuses a bundle, or why it goes wrong later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from segjudge.platforms.evalai.bundle.opened_bundle import BundleRefusedError
from segjudge.platforms.evalai.bundle.problems import BundleProblem, BundleProblems
from segjudge.system.errors import UsageError

from . import competition_rules, phase_rules, task_rules
from .opened_competition import CONFIG, OpenedCompetition, opened_competition, refused
from .pitfalls import pitfalls

Rule = Callable[[OpenedCompetition], BundleProblems]

#: In the unpacker's order: it reads everything, then saves one thing after the other.
RULES: tuple[Rule, ...] = (
    competition_rules.pages,
    task_rules.tasks,
    task_rules.solutions,
    competition_rules.terms_and_picture,
    competition_rules.queue,
    phase_rules.phases,
    phase_rules.leaderboards,
    task_rules.saved_tasks,
    task_rules.saved_solutions,
    phase_rules.saved_phases,
    competition_rules.top,
    phase_rules.phase_fields,
    competition_rules.rest,
)
#: The versions that CodaLab's bundles have, which are read in another way.
_OLD_VERSIONS = ("1", "1.5")


def check(path: str) -> list[BundleProblem]:
    """Return the problems of a bundle, a zip or a folder, in the order in which Codabench would come to them.

    Raises `UsageError` for one of CodaLab's, which is read by rules that are not known here.
    """
    try:
        with opened_competition(path) as bundle:
            return [bundle.located(problem) for problem in [*_problems(bundle, path), *pitfalls(bundle, path)]]
    except BundleRefusedError as error:
        return [replace(error.problem, location=error.problem.location or path)]


def _problems(bundle: OpenedCompetition, path: str) -> BundleProblems:
    version = str(bundle.config.get("version", "1"))
    if version in _OLD_VERSIONS and "html" not in bundle.config:
        found = f"is {version if 'version' in bundle.config else 'missing'}, so that Codabench reads it as CodaLab's"
        quote = "HTML pages could not be found in the yaml file"
        yield refused(4, "version", found, "Write version: 2", quote)
    elif version in _OLD_VERSIONS:
        found = f"is a bundle of CodaLab's ({CONFIG} has no version: 2), which Codabench reads by other rules"
        raise UsageError(f"{path}: {found}; nothing can be said of it here. Write it anew for version 2")
    elif version != "2":
        quote = "A suitable version could not be found for this competition. Make sure one is supplied in the yaml."
        yield refused(4, "version", f"is {version}", "Write version: 2", quote)
    for rule in RULES:
        yield from rule(bundle)
