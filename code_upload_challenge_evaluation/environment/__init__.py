"""The host's container: an environment served to agents over gRPC."""
