"""Reports for people: tables in the terminal, CSV files, pages, published numbers."""
