"""Static code upload: a container that reads a dataset and writes one submission."""
