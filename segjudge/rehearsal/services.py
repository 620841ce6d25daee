"""Everything that the API, the pages and the workers share, put together once."""

from __future__ import annotations

from collections.abc import Callable, Collection

from .accounts import Accounts
from .bundle_import import BundleImport
from .challenges import Challenges
from .queue import VISIBILITY, MessageQueues
from .results import ResultStore
from .signed_urls import SignedUrls
from .store import Store
from .submissions import Submissions


class Services:
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
        self.links = SignedUrls(self.store)
        self.queue = MessageQueues(self.store, visibility, again)
        self.challenges = Challenges(self.store, self.accounts, self.links)
        self.intake = BundleImport(self.store)
        self.submissions = Submissions(self.store, self.challenges, self.queue, self.links)
        self.reporting = ResultStore(self.challenges, self.submissions)
        #: What the workers are doing, told by themselves: a line for each.
        self.workers: dict[int, str] = {}
