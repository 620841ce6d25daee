"""The number of open connections of a port, read from the kernel: gRPC does not report them between two calls."""

import errno

_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
#: Returned where no file descriptor is left to open the table.
MANY = 1 << 20
_EXHAUSTED = (errno.EMFILE, errno.ENFILE)
_ESTABLISHED = "01"


def established(port: int) -> int | None:
    """Return the number of connections of a local port; None on systems without these tables."""
    count, known = 0, False
    for table in _TABLES:
        try:
            with open(table, encoding="ascii") as file:
                rows = file.read().splitlines()[1:]
        except OSError as error:
            if error.errno in _EXHAUSTED:
                return MANY
            continue
        known = True
        for row in rows:
            _, local, _, state, *_ = row.split()
            count += state == _ESTABLISHED and int(local.rpartition(":")[2], 16) == port
    return count if known else None
