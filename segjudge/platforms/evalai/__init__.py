"""EvalAI's REST API: each call in one place, for those who call it and for the rehearsal that answers it."""
