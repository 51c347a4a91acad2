"""Which configurations of a results file belong together, and short labels for them.

A family is all configurations that are equal except for their budget. A label is the selector and
the parameters in which the family differs from its selector's most common values.
"""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from quoka_paper.prompts_statistics import text

OVER_CELLS = ["capture", "layer", "q_head"]
BUDGET_NAMES = ("budget", "budget_keys", "budget_percent")


@dataclass
class Family:
    selector: str
    label: str
    n_differences: int  # parameters in which it differs from its selector's common values
    configs: list = field(default_factory=list)  # positions along ds.config, by keys kept


def parameter_table(ds):
    """One dict {parameter: text} per configuration, in file order; the budget as written."""
    names = [n for n in ds.coords if ds[n].dims == ("config",) and n not in ("config", *BUDGET_NAMES[1:])]
    columns = {name: ds[name].values for name in names}
    return [{name: text(columns[name][i]) for name in names} for i in range(ds.sizes["config"])]


def reference_values(table):
    """Per selector: the most common value of each parameter that varies (the first one, if tied)."""
    references = {}
    for selector in dict.fromkeys(row["selector"] for row in table):
        rows = [row for row in table if row["selector"] == selector]
        references[selector] = {}
        for name in rows[0]:
            counts = Counter(row[name] for row in rows if row[name] != "")
            if len(counts) > 1 and name != "budget":
                references[selector][name] = counts.most_common(1)[0][0]
    return references


def differences(row, references):
    return [
        f"{name}={row[name]}"
        for name, common in references[row["selector"]].items()
        if row[name] not in ("", common)
    ]


def families(ds):
    """The families of a results file in file order, budgets ascending."""
    table = parameter_table(ds)
    references = reference_values(table)
    kinds = {row["budget"].endswith("%") for row in table}
    found = {}
    for i, row in enumerate(table):
        is_percentage = row["budget"].endswith("%")
        key = (*(value for name, value in row.items() if name != "budget"), is_percentage)
        if key not in found:
            named = differences(row, references)
            label = ", ".join([row["selector"], *named])
            label += " (budget in %)" if is_percentage and len(kinds) > 1 else ""
            found[key] = Family(row["selector"], label, len(named))
        found[key].configs.append(i)
    kept = ds["keys_kept"].mean(OVER_CELLS).values
    for family in found.values():
        family.configs.sort(key=lambda i: kept[i])
    return list(found.values())


def reference_note(ds):
    """What a label does not say: the common values of the parameters that vary."""
    notes = [
        f"{selector}: " + ", ".join(f"{name}={value}" for name, value in values.items())
        for selector, values in reference_values(parameter_table(ds)).items()
        if values
    ]
    return "where a label does not say otherwise, " + "; ".join(notes) if notes else ""


def only(ds, wanted):
    """The configurations whose parameters have these values {name: [texts]}, or where they cannot matter."""
    keep = [
        all(row[name] in ("", *values) for name, values in wanted.items()) for row in parameter_table(ds)
    ]
    return ds.isel(config=np.flatnonzero(keep))


def describe(ds, config):
    """Every parameter that matters to the configuration at this position."""
    row = parameter_table(ds)[config]
    return ", ".join(f"{name}={value}" for name, value in row.items() if value != "")


def rows_note(ds):
    """A warning if configurations are averaged over different rows."""
    if len(set(ds["n_rows_active"].sum(OVER_CELLS).values)) == 1:
        return ""
    return ("the active rows differ between configurations, so their means are not over the same rows "
            "(between budgets: set min_history to one more than the largest)")
