"""EvalAI: its REST API (client and server side), bundles, and its worker.

`routes` are the paths of the API and `rows` what crosses it, both of the standard library alone; `client` calls it for
an account.  `remote_worker` has the options of our own worker, and the files to operate it with.  The modules of the
contract are imported one by one.
"""

__all__ = ["boards", "bundle", "client", "hosted_worker", "remote_worker", "routes", "rows"]
