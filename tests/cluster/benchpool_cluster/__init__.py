"""A real Kubernetes cluster for tests, built and run from package registries alone."""
