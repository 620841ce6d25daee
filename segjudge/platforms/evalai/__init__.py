"""EvalAI: its REST API for those who call it and the server that answers it, bundles, its worker."""
