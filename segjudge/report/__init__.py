"""What people look at: tables in the terminal, CSV files, published numbers."""
