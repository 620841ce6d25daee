"""Example methods, which `segjudge interactive run` calls."""
