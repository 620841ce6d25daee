"""EvalAI played: pages, API, queue and workers, and all that is stored; `segjudge rehearse` starts it."""
