"""The labs' own measurements, made here and printed as the tables behind their charts."""

import argparse
from collections.abc import Callable

import pandas as pd

from benchmarks.report import finish, machine
from inference import batching, speculative_speed, temperature_zero
from inference.charts import batching as batching_charts
from inference.charts import speculative as speculative_charts
from inference.charts import temperature_zero as temperature_zero_charts
from inference.measurement import timed
from inference.models import batched, continuous, draft, embedded, quantization
from inference.prefix_cache import PrefixCache


def of_temperature_zero(scorer: PrefixCache) -> list[pd.DataFrame]:
    result = finish(temperature_zero.measure(scorer, batched, quantization.open_precision))
    near_ties = [
        temperature_zero_charts.near_ties_table(search.near_ties, scorer.vocabulary.text, scorer.vocabulary.label).assign(
            precision=search.precision
        )
        for search in result.searches
    ]
    return [temperature_zero_charts.comparisons_table(result.comparisons), *near_ties]


def of_batching(scorer: PrefixCache) -> list[pd.DataFrame]:
    result = finish(batching.measure(scorer, continuous.PaddedRows, continuous.PagedEngine))
    services = {"static": result.static, "continuous": result.continuous}
    computed = {"static": (result.static, result.static_predicted), "continuous": (result.continuous, result.continuous_predicted)}
    return [
        batching_charts.sizes_table(result.sizes),
        batching_charts.sizes_table(result.paged_sizes),
        batching_charts.services_table(services),
        batching_charts.predictions_table(computed),
    ]


def of_speculative(scorer: PrefixCache) -> list[pd.DataFrame]:
    results = {temperature: finish(speculative_speed.measure(scorer, temperature, draft.open_draft)) for temperature in (0.0, 1.0)}
    return [speculative_charts.runs_table(result.runs).assign(T=temperature) for temperature, result in results.items()]


LABS: dict[str, Callable[[PrefixCache], list[pd.DataFrame]]] = {
    "temperature_zero": of_temperature_zero,
    "batching": of_batching,
    "speculative": of_speculative,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("labs", nargs="*", default=list(LABS), choices=LABS)
    arguments = parser.parse_args()
    print(machine())
    scorer = PrefixCache(embedded.load())
    pd.set_option("display.width", 200, "display.max_columns", None, "display.max_colwidth", 40)
    for name in arguments.labs:
        seconds, tables = timed(lambda name=name: LABS[name](scorer))
        print(f"\n{name}, {seconds:.0f} s")
        for table in tables:
            print(table.to_string(index=False))


if __name__ == "__main__":
    main()
