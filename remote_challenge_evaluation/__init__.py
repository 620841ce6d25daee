"""The remote worker: takes submissions from EvalAI's queue, scores them on this machine, and reports.

Nothing else of Segjudge imports it: its contract is `python -m segjudge.remote_challenge_evaluation` (`__main__`), and
`evaluate`, which EvalAI's starter worker calls.  From there inwards:

- `worker_loop` runs one process or several, through whatever a server or a disk does;
- `worker` takes jobs from `queues` and `journal`, each to its end, and sweeps for what was lost;
- `scoring` brings one job to its report: `download`, then `evaluation`, which runs a child and watches it;
- `scoring_messages` are the messages between the two; the child is `scoring_process`, or `host_program` for a host's
  own `evaluate()`, which `host_scorer` looks for;
- `services`, `settings` and `monitoring` are what all of them share.
"""

__all__ = ["evaluate"]
