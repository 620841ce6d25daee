"""The host's container: an environment that agents reach over gRPC."""
