"""Write the tale to its file."""

from . import FILE, write_part
from .parts import PARTS

FILE.write_text("".join(map(write_part, PARTS)), encoding="utf-8")
