"""EvalAI: its REST API (client and server side), bundles, and its worker.

`routes` and `rows` define the API's paths and data with the standard library only; `client` calls it with an account.
`remote_worker` has the options and service files of Segjudge's worker. The modules are imported one by one.
"""

__all__ = ["boards", "bundle", "client", "hosted_worker", "remote_worker", "routes", "rows"]
