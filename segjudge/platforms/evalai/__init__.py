"""EvalAI: its REST API for those who call it and the server that answers it, bundles, its worker.

`routes` are the paths of the API and `rows` what crosses it, both of the standard library alone; `client` calls it for
an account.  The modules of the contract are imported one by one.
"""

__all__ = ["boards", "bundle", "client", "hosted_worker", "routes", "rows"]
