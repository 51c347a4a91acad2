"""Which configurations of a results file answer the question: what does this one parameter do?

A study is one parameter, the others held at the values of a base configuration: the first in the file in which
the parameter matters. Oracle and random at the same values are its references.
"""

from dataclasses import dataclass, field

import numpy as np

from result_families import parameter_table

REFERENCES = ("oracle", "random")
APART = ("budget", "seed")  # the budget is an axis of a figure; draws of one random choice are one point


@dataclass
class Point:
    """One value at one budget; several configurations only where the seed differs."""

    budget: str
    configs: list
    keys: float = np.nan  # kept per chunk and KV head, mean over everything


@dataclass
class Series:
    """One value of the parameter (or one reference) at every budget, by keys kept."""

    label: str
    value: str
    points: list = field(default_factory=list)

    def at(self, budget):
        return next((point for point in self.points if point.budget == budget), None)


@dataclass
class Study:
    parameter: str
    base: dict  # the base configuration, {parameter: text}
    series: list  # the base's first
    references: list

    @property
    def budgets(self):
        return list(dict.fromkeys(point.budget for series in self.series for point in series.points))

    def references_of(self, value):
        """The references at this value, or those that the parameter does not touch."""
        return [series for series in self.references if series.value in ("", value)]

    def configs(self):
        everyone = self.series + self.references
        return [config for series in everyone for point in series.points for config in point.configs]


def agrees(row, base, free):
    """Whether a configuration differs from the base in these parameters only, or where one cannot matter."""
    return all(row[name] == value or "" in (row[name], value) for name, value in base.items() if name not in free)


def gather(rows, table, parameter, label_of):
    """Series of these configurations by value; those that differ in more than base and value say so."""
    found = {}
    for i in rows:
        found.setdefault((label_of(i), table[i][parameter]), {}).setdefault(table[i]["budget"], []).append(i)
    return [Series(label, value, [Point(budget, configs) for budget, configs in budgets.items()])
            for (label, value), budgets in found.items()]


def study_of(table, parameter):
    plain = [i for i, row in enumerate(table) if row["selector"] not in REFERENCES] or list(range(len(table)))
    base = table[next(i for i in plain if table[i][parameter])]
    free = (*APART, parameter)
    members = [i for i in plain if table[i][parameter] and agrees(table[i], base, free)]
    extra = [name for name, value in base.items() if not value and name not in free]

    def label_of(i):
        alike = [table[j] for j in members if table[j][parameter] == table[i][parameter]]
        more = [name for name in extra if len({row[name] for row in alike}) > 1]
        word = base["selector"] if parameter == "budget" else table[i][parameter]
        return ", ".join([word, *(f"{name}={table[i][name]}" for name in more)])

    references = [i for i, row in enumerate(table) if row["selector"] in REFERENCES and i not in members
                  and agrees(row, base, (*free, "selector"))]
    by_value = "selector" if parameter in APART else parameter
    found = gather(references, table, by_value, lambda i: table[i]["selector"])
    for series in found:
        series.value = "" if parameter in ("selector", *APART) else series.value
    return Study(parameter, base, gather(members, table, by_value, label_of), found)


def studies(ds):
    """One study per parameter that varies; if none does, one of the budget."""
    table = parameter_table(ds)
    varying = [name for name in table[0] if name not in APART and
               len({row[name] for row in table if row["selector"] not in REFERENCES} - {""}) > 1]
    kept = ds["keys_kept"].mean(["capture", "layer", "q_head"]).values
    found = [study_of(table, name) for name in varying or ["budget"]]
    for study in found:
        for series in study.series + study.references:
            for point in series.points:
                point.keys = float(np.mean(kept[point.configs]))
            series.points.sort(key=lambda point: point.keys)
    return [study for study in found if len(study.series) > 1 or study.parameter == "budget"]


def left_out(ds, drawn):
    """Configurations in no figure because they combine several changes."""
    return ds.sizes["config"] - len({config for study in drawn for config in study.configs()})
