"""Which configurations of a results file answer the question: what does this one parameter do?

A study is one parameter, the others held at the values of a base configuration: the first in the file in which
the parameter matters. Oracle and random at the same values are its references.
"""

from dataclasses import dataclass, field

import numpy as np

from result_families import OVER_CELLS, parameter_table

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
    base: dict  # {parameter: text} of the base configuration
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


def gather(rows, table, value_of, label_of):
    """Series of these configurations, one per value and label."""
    found = {}
    for i in rows:
        found.setdefault((label_of(i), value_of(i)), {}).setdefault(table[i]["budget"], []).append(i)
    return [Series(label, value, [Point(budget, configs) for budget, configs in budgets.items()])
            for (label, value), budgets in found.items()]


def references_at(base, table, free=()):
    """Oracle and random where they agree with the base outside these parameters."""
    free = ("selector", *APART, *free)
    return [i for i, row in enumerate(table) if row["selector"] in REFERENCES and agrees(row, base, free)]


def study_of(table, parameter):
    plain = [i for i, row in enumerate(table) if row["selector"] not in REFERENCES] or list(range(len(table)))
    base = table[next(i for i in plain if table[i][parameter])]
    members = [i for i in plain if table[i][parameter] and agrees(table[i], base, (*APART, parameter))]
    hidden = [name for name, value in base.items() if not value and name not in (*APART, parameter)]

    def label_of(i):
        """The value, and what else two configurations of this value differ in (a parameter that the base lacks)."""
        alike = [table[j] for j in members if table[j][parameter] == table[i][parameter]]
        more = [name for name in hidden if len({row[name] for row in alike}) > 1]
        word = base["selector"] if parameter == "budget" else table[i][parameter]
        return ", ".join([word, *(f"{name}={table[i][name]}" for name in more)])

    touched = parameter not in ("selector", "budget")  # a reference may have a value of it
    references = [i for i in references_at(base, table, [parameter]) if i not in members]
    return Study(parameter, base,
                 gather(members, table, lambda i: "" if parameter == "budget" else table[i][parameter], label_of),
                 gather(references, table, lambda i: table[i][parameter] if touched else "",
                        lambda i: table[i]["selector"]))


def combinations(table, found):
    """What differs from the base in several parameters at once, as one study; None if nothing does."""
    drawn = {config for study in found for config in study.configs()}
    rest = [i for i, row in enumerate(table) if i not in drawn and row["selector"] not in REFERENCES]
    if not rest:
        return None
    base = found[0].base

    def label_of(i):
        return ", ".join(value if name == "selector" else f"{name}={value}" for name, value in table[i].items()
                         if value not in ("", base[name]) and name not in APART)

    first = gather([i for i, row in enumerate(table) if row == {**base, "budget": row["budget"]}], table,
                   lambda i: "base", lambda i: "base")
    return Study("combinations", base, first + gather(rest, table, label_of, label_of),
                 gather(references_at(base, table), table, lambda i: "", lambda i: table[i]["selector"]))


def studies(ds):
    """One study per parameter that varies, then one of combinations; if no parameter varies, one of the budget."""
    table = parameter_table(ds)
    varying = [name for name in table[0] if name not in APART and
               len({row[name] for row in table if row["selector"] not in REFERENCES} - {""}) > 1]
    found = [study for study in (study_of(table, name) for name in varying) if len(study.series) > 1]
    found = found or [study_of(table, "budget")]
    combined = combinations(table, found)
    found += [combined] if combined else []
    kept = ds["keys_kept"].mean(OVER_CELLS).values
    for series in (series for study in found for series in study.series + study.references):
        for point in series.points:
            point.keys = float(np.mean(kept[point.configs]))
        series.points.sort(key=lambda point: point.keys)
    return found
