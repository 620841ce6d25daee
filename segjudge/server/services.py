"""The services that the API, the pages and the workers share, created once."""

import time
from collections.abc import Callable, Collection, Sequence

from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.requests import Request

from .accounts import Accounts
from .actions.hosting import Hosting
from .actions.permissions import Permissions
from .actions.reporting import WorkerReports
from .actions.submitting import Submitting, Uploading
from .background import Background
from .bundle_import import BundleImport
from .evalai_json import EvalAIJson
from .leaderboards import Comparisons
from .report_pages import ReportPages
from .store import Store
from .stored_files import FileStore
from .submissions import VISIBILITY, MessageQueues, Submissions


class Services:
    """What one server shares."""

    def __init__(
        self,
        folder: str,
        visibility: float = VISIBILITY,
        repeats: Callable[[], bool] = lambda: False,
        hosts: Collection[str] = (),
        database: str = "",
        now: Callable[[], float] = time.time,
    ) -> None:
        """`now` returns the moment by which challenges and phases are open."""
        self.store = Store(folder, database)
        self.files = FileStore(self.store)
        self.accounts = Accounts(self.store, hosts)
        self.now = now
        self.json = EvalAIJson(self.store, self.files, now)
        self.queue = MessageQueues(self.store, visibility, repeats)
        self.comparisons = Comparisons(self.store, self.files)
        self.report_pages = ReportPages(self.store, self.files)
        self.submissions = Submissions(self.store, self.files, self.queue)
        self.bundles = BundleImport(self.store, self.files)
        self.permissions = Permissions(self.store, self.accounts)
        self.submitting = Submitting(self.store, self.accounts, self.files, self.submissions, self.permissions, now)
        self.uploading = Uploading(self.store, self.files, self.queue, self.permissions, self.submitting)
        self.hosting = Hosting(self.store, self.submissions, self.permissions)
        self.reports = WorkerReports(self.store, self.files, self.submissions, self.permissions)
        #: What each worker is doing, as it reports itself.
        self.workers: dict[int, str] = {}
        #: What works beside the server, and since when that runs.
        self.background: Sequence[Background] = ()
        self.began_at = time.time()


def services_of(request: Request) -> Services:
    """Return the services of the application that was asked."""
    services: Services = request.app.state.services
    return services


class _Number(IntegerConvertor):
    """A number that the database can hold."""

    regex = "[0-9]{1,18}"


# Here, since every module with routes imports this one.
register_url_convertor("int", _Number())
