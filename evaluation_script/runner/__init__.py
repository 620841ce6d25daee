"""A job in a child process under limits, and a sentence on how it ended; work shared by several processes."""
