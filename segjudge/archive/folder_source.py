"""A folder of submissions, and a CSV of their published numbers if there is one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from segjudge.evaluation_script.files.problems import name_list, printable
from segjudge.system.errors import UsageError
from segjudge.system.files import name_of

from .published import PublishedNumbers, list_labels, match_files, read_published
from .rescored import Order, Scale
from .rescoring import Entry, list_folder


@dataclass(frozen=True)
class FolderSource:
    """A folder whose files are submissions."""

    folder: str
    #: The CSV; "" without published numbers.
    published: str
    #: The CSV and the output, which are no submissions, if they are in the folder.
    others: Collection[str]
    #: The splits whose scores visitors of the challenge do not see, unless they are released.
    hidden: frozenset[str]
    #: Metrics by columns of the CSV.
    renames: Mapping[str, str]
    scale: Scale

    @property
    def title(self) -> str:
        return f"{name_of(self.folder)}, scored again"

    def find_hidden(self, truths: Collection[str]) -> frozenset[str]:
        """Return the truth's splits that are not scored."""
        if self.hidden >= {*truths}:
            fault = f"the challenge hides the scores of {name_list(sorted(truths))} from visitors"
            raise UsageError(f"{fault}. If you release them, add --as-host")
        return self.hidden & {*truths}

    def list_entries(self, metrics: Mapping[str, Sequence[str]]) -> tuple[list[Entry], list[str]]:
        """Return the submissions with their numbers of these metrics, and notes."""
        table, notes = PublishedNumbers(), list[str]()
        if self.published:
            table = read_published(self.published, list_labels(metrics), self.renames)
            if table.ignored:
                notes.append(
                    f"{name_of(self.published)}: columns that name no metric are ignored: {name_list(table.ignored)}"
                )
        files = {entry.name: entry for entry in list_folder(self.folder, self.others)}
        matched = match_files(table.numbers, files)
        if table.numbers and not matched:
            names = (
                f"such as {printable(next(iter(table.numbers)))}, names a file, such as {printable(next(iter(files)))}"
            )
            raise UsageError(f"{self.published}: no submission, {names}. Write the names of the files")
        of_file = {file: name for name, file in matched.items()}
        entries = [self._add_numbers(entry, table, of_file.get(file, "")) for file, entry in files.items()]
        absence = f"{name_of(self.folder)} has no file of this name"
        lost = [Entry(name, absence=absence) for name in table.numbers if name not in matched]
        return [*entries, *(self._add_numbers(entry, table, entry.name) for entry in lost)], notes

    def find_order(self, truth: str) -> Order | None:
        """Return None: the first published metric orders the leaderboard."""
        del truth
        return None

    def explain_difference(self, split: str, protocol: str) -> str:
        """Return why a protocol may give other numbers in a split than were published."""
        del split
        return f"{protocol} scores now; another protocol, version, truth or file may have been scored then"

    def _add_numbers(self, entry: Entry, table: PublishedNumbers, name: str) -> Entry:
        return replace(entry, team=table.teams.get(name, ""), numbers=table.numbers.get(name, {}))
