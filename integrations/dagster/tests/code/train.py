"""A job that reports to Dagster."""

from dagster_pipes import open_dagster_pipes

with open_dagster_pipes() as pipes:
    print("epoch 1")
    pipes.report_asset_materialization(metadata={"loss": pipes.get_extra("rate") / 2})
