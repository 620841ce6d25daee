"""The kernel's C sources, and what compiles them; `evaluation_script/kernel.py` loads the result."""
