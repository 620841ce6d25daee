"""What users and workers do on the server, and who may do it: every rule and every permission."""
