"""The machine: child processes and their limits, interrupts, files written in one step, errors of commands."""
