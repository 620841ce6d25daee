"""`python -m linejudge` is the command line."""

from .cli import main

raise SystemExit(main())
