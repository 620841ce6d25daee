"""A simulation of EvalAI: pages, API, queues, workers and storage; `segjudge rehearse` starts it.

`Services` are created once and shared by all: store, files, submissions and their queues, and accounts, which know who
may see and do what. The actions of people and workers are functions over them (`actions`, `bundle_import`).
`create_app` serves the API, the pages and the files; `Workers`, `CodeUploads` and the report pages work
beside it in threads (`Background`). `first_run` creates people, teams and the challenge.

The contract names modules, which a command imports when it runs: they load a web server and a database.
"""

from segjudge.system.extras import require_extra

__all__ = ["background", "code_uploads", "event_import", "first_run", "models", "server", "services", "wire", "workers"]

require_extra("serve", __name__)
