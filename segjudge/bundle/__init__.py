"""The folder that is uploaded: built from a list, checked by the server's rules."""
