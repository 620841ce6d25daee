"""Everything that the API, the pages and the workers share, put together once."""

from __future__ import annotations

from collections.abc import Callable, Collection

from .accounts import Accounts
from .challenges import Challenges
from .intake import Intake
from .links import Links
from .queue import VISIBILITY, Queue
from .reporting import Reporting
from .store import Store
from .submissions import Submissions


class Desk:
    """One rehearsal."""

    def __init__(
        self,
        folder: str,
        visibility: float = VISIBILITY,
        again: Callable[[], bool] = lambda: False,
        hosts: Collection[str] = (),
    ) -> None:
        self.store = Store(folder)
        self.accounts = Accounts(self.store, hosts)
        self.links = Links(self.store)
        self.queue = Queue(self.store, visibility, again)
        self.challenges = Challenges(self.store, self.accounts, self.links)
        self.intake = Intake(self.store)
        self.submissions = Submissions(self.store, self.challenges, self.queue, self.links)
        self.reporting = Reporting(self.challenges, self.submissions)
        #: What the workers are doing, told by themselves: a line for each.
        self.workers: dict[int, str] = {}
