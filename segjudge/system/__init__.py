"""The machine: child processes and their limits, interrupts, files here and at addresses, errors of commands."""
