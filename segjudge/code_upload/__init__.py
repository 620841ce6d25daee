"""Code upload: agents that play environments, on a laptop or on EvalAI."""
