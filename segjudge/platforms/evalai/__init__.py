"""EvalAI: its REST API for those who call it and the server that answers it, bundles, its worker.

`client` calls, `routes` and `rows` are the paths of the API and what crosses it, `settings` an account.  Both
need the standard library alone; the modules of the contract are imported one by one.
"""

__all__ = ["bundle", "client", "hosted_worker", "routes", "rows", "settings"]
