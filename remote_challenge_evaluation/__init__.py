"""The remote worker: takes submissions from EvalAI's queue, scores them on this machine, and reports."""
