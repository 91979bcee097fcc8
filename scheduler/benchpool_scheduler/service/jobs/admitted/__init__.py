"""Pods of others as jobs of the pool: which are accepted, and which end because they are gone."""
