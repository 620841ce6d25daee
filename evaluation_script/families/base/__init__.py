"""What families are made of: engines, counts that merge, reports with errors, and units such as images."""
