"""The remote worker: it takes submissions from EvalAI's queue, scores them here, and reports.

Nothing else in Segjudge imports it. Its contract is `python -m segjudge.remote_challenge_evaluation` (`__main__`), and
`evaluate`, which EvalAI's starter worker and this worker call. From the outside in:

- `worker_loop` runs one process or several, through whatever a server or a disk does;
- `worker` takes each job to its end, from the queue or from the `journal`, and sweeps for what was lost;
- `scoring` brings one job to its report: `download`, then `scorer_process`, which runs `evaluate()` in a process;
- `challenge` is run in a process, too: it reads bundles and annotations, which a worker that waits does not load;
- `services` are what all of them share: queues, buckets, and the request to stop.

What a team reads stands at the top of `scoring`, what an operator reads before the start in `settings`.  While it runs,
an operator reads what is logged where it happens, lost servers and pauses in `worker_loop`; `monitoring` knows how
grave it is.
"""

from segjudge.system.extras import require_extra

__all__ = ["evaluate"]

require_extra("host", __name__)
