"""EvalAI's own worker, played: its folder, its process, its program and its limits."""
