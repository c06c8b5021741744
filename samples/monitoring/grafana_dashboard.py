#!/usr/bin/env python3
"""Prints the Grafana dashboard grafana.json beside it. Needs grafana-foundation-sdk from PyPI."""

from __future__ import annotations

from grafana_foundation_sdk.builders import common, dashboard, prometheus, stat, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import BigValueGraphMode, LegendDisplayMode, LegendPlacement
from grafana_foundation_sdk.models.dashboard import DataSourceRef

LEGEND = common.VizLegendOptions().display_mode(LegendDisplayMode.LIST).placement(LegendPlacement.BOTTOM)
LEGEND.show_legend(True)
LAST = common.ReduceDataOptions().calcs(["lastNotNull"])
SOURCE = DataSourceRef(type_val="prometheus", uid="${source}")

# Title, unit of Grafana, query, legend.
CURVES = [
    ("Loss", "short", "dpwa_loss", "{{node}}"),
    ("Clock behind the first node", "short", "scalar(max(dpwa_clock)) - dpwa_clock", "{{node}}"),
    ("Steps", "ops", "rate(dpwa_steps_total[1m])", "{{node}}"),
    ("Pulls by outcome", "ops", "sum by (outcome) (rate(dpwa_pulls_total[1m]))", "{{outcome}}"),
    ("Received", "Bps", "rate(dpwa_received_bytes_total[1m])", "{{node}}"),
    ("Sent", "Bps", "rate(dpwa_sent_bytes_total[1m])", "{{node}}"),
    ("Wait for the servers", "s", "dpwa_store_wait_seconds", "{{node}}"),
    ("Firewall", "ops", "sum by (verdict) (rate(dpwa_firewall_total[5m]))", "{{verdict}}"),
]
NUMBERS = [
    ("Processes that answer", "short", "sum(dpwa_up)", ""),
    ("Median loss", "short", "quantile(0.5, dpwa_loss)", ""),
    ("Median clock", "short", "quantile(0.5, dpwa_clock)", ""),
]


def query(expression: str, legend: str) -> prometheus.Dataquery:
    return prometheus.Dataquery().expr(expression).legend_format(legend).ref_id("A")


def main() -> None:
    board = (
        dashboard.Dashboard("dpwa")
        .uid("dpwa")
        .refresh("5s")
        .time("now-30m", "now")
        .with_variable(dashboard.DatasourceVariable("source").type("prometheus").label("Prometheus"))
    )
    for title, unit, expression, legend in NUMBERS:
        panel = stat.Panel().title(title).unit(unit).datasource(SOURCE).span(8).height(4)
        panel.graph_mode(BigValueGraphMode.AREA).reduce_options(LAST)
        board.with_panel(panel.with_target(query(expression, legend)))
    for title, unit, expression, legend in CURVES:
        panel = timeseries.Panel().title(title).unit(unit).datasource(SOURCE).span(12).height(8)
        panel.legend(LEGEND)
        board.with_panel(panel.with_target(query(expression, legend)))
    print(JSONEncoder(sort_keys=True, indent=2).encode(board.build()))


if __name__ == "__main__":
    main()
