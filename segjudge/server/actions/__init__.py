"""What users and workers do in the rehearsal, and who may do it: every rule and every permission."""
