"""EvalAI's REST API: each call said once, for those who call it and for the rehearsal that answers it."""
