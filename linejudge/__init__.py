"""The toolkit of hosts and participants: score, pack, build, check and run a challenge."""

from evaluation_script.version import VERSION

__version__ = VERSION
