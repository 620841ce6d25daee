"""The kernel's C sources, and what compiles them; `evaluation_script/masks/kernel.py` loads the result."""
