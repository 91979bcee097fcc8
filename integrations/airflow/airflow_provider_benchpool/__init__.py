"""Jobs of a benchpool as tasks of Airflow: a hook, a deferrable operator, a sensor, a trigger."""

from __future__ import annotations

from typing import Any

__version__ = "0.2.0"


def get_provider_info() -> dict[str, Any]:
    """Return the provider information for Airflow, including its connection types."""
    return {
        "package-name": "airflow-provider-benchpool",
        "name": "benchpool",
        "description": "Run jobs of a benchpool as tasks.",
        "versions": [__version__],
        "connection-types": [
            {
                "connection-type": "benchpool",
                "hook-class-name": "airflow_provider_benchpool.hooks.BenchpoolHook",
                "hook-name": "benchpool",
                "ui-field-behaviour": {
                    "hidden-fields": ["port", "schema", "login", "extra"],
                    "relabeling": {"host": "Address", "password": "Token"},
                    "placeholders": {
                        "host": "https://hub.example.org/services/benchpool",
                        "password": "token of the Hub",
                    },
                },
            }
        ],
    }
