"""The remote worker: it takes submissions from EvalAI's queue, scores them here, and reports.

Nothing else in Segjudge imports it. Its contract is `python -m segjudge.remote_challenge_evaluation` (`__main__`), and
`evaluate`, which EvalAI's starter worker and this worker call. From the outside in:

- `worker_loop` runs one process or several, and survives failures of servers and disks;
- `worker` takes each job to its end, from the queue or from the `journal`, and sweeps for lost submissions;
- `scoring` brings one job to its report: `download`, then `scorer_process`, which runs `evaluate()` in a process;
- `challenge` runs in a process too: it reads bundles and annotations, which an idle worker does not load;
- `services` are shared by all of them: queues, buckets, and the request to stop.

Messages for teams stand at the top of `scoring`, messages for operators before the start in `settings`.  While it runs,
each module logs its own events, `worker_loop` lost servers and pauses; `monitoring` decides how severe they are.
"""

from segjudge.system.extras import require_extra

__all__ = ["evaluate"]

require_extra("host", __name__)
