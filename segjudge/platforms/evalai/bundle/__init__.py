"""The challenge bundle: built from a list of files, checked by the server's rules, and pushed."""
