"""The version of this bundle; reports and the package carry it."""

VERSION = "0.1.0"
