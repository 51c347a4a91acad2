"""What the paper leaves open: its literal choice against the other one, and what others measured."""

from dataclasses import dataclass
from typing import Tuple

from .claims import Better, Claim, Comparison, Within
from .claims_paper import ORACLE, QUOKA, RANDOM, REFERENCES


def switch(parameter: str, literal: str, *others: str, **more) -> dict:
    """Rows and comparisons of one switch, the paper's literal value first."""
    values = {value: {**QUOKA, parameter: value, **more} for value in (literal, *others)}
    return {"rows": {literal + " (literal)": values[literal], **{name: values[name] for name in others}, **REFERENCES},
            "comparisons": tuple(Comparison(f"{literal} instead of {name}", values[literal], values[name])
                                 for name in others)}


def setting(size: int, n: int, pairing: str = "rank", candidates: str = "history") -> dict:
    """A row of followup.toml. With at least as many queries as rows, all are kept in order of position."""
    return {**QUOKA, "chunk_size": size, "n_sel_queries": n, "pairing": pairing, "candidates": candidates}


def shared(n: int) -> dict:
    return {"candidates": "history", "chunk_size": n}


def forced(first: int, recent: int) -> dict:
    return {**QUOKA, "keep_first": first, "keep_recent": recent}


def offset(n: int) -> dict:
    return {**QUOKA, "chunk_offset": n}


STREAMING = {"selector": "sink_recent", "keep_first": 4}
PER_HEAD = {"query_scope": "per_head"}
RANK = {**QUOKA, **PER_HEAD, "pairing": "rank"}
POSITION = {**QUOKA, **PER_HEAD, "pairing": "position"}
PER_GROUP = {**QUOKA, "query_scope": "per_group"}
HISTORY, CACHE = {"candidates": "history"}, {"candidates": "cache"}
PAPER_SETTING, FOLLOWUP_SETTING = setting(128, 16), setting(1024, 256)

OPEN_CLAIMS = [
    Claim("followup", "a follow-up, arXiv 2605.16839",
          "A quarter of the keys in chunks of 1024 with a quarter of the queries loses more than in chunks of 128 with"
          " 16 queries.",
          "RULER at 32k: 83.52 against 88.23 dense (Llama-3.1-8B), 81.96 against 93.01 (Qwen3-30B); the paper: at most"
          " 3 points",
          "followup",
          {"chunk 128, 16 queries (the paper)": PAPER_SETTING, "chunk 128, 32 queries (a quarter)": setting(128, 32),
           "chunk 1024, 16 queries": setting(1024, 16), "chunk 1024, 256 queries (follow-up)": FOLLOWUP_SETTING,
           "the same, pairing by position": setting(1024, 256, "position"),
           "the same, candidates = cache": setting(1024, 256, candidates="cache"),
           "oracle, chunk 128": {**ORACLE, **shared(128)}, "random, chunk 128": {**RANDOM, **shared(128)},
           "oracle, chunk 1024": {**ORACLE, **shared(1024)}, "random, chunk 1024": {**RANDOM, **shared(1024)}},
          (Comparison("the paper's setting instead of the follow-up's", PAPER_SETTING, FOLLOWUP_SETTING),
           Comparison("chunk 128 instead of 1024, 16 queries", PAPER_SETTING, setting(1024, 16), votes=False),
           Comparison("16 queries instead of 256, chunk 1024", setting(1024, 16), FOLLOWUP_SETTING, votes=False),
           Comparison("16 queries instead of 32, chunk 128", PAPER_SETTING, setting(128, 32), votes=False),
           Comparison("rank instead of position, chunk 1024, 256 queries", FOLLOWUP_SETTING,
                      setting(1024, 256, "position"), votes=False),
           Comparison("history instead of cache, chunk 1024, 256 queries", FOLLOWUP_SETTING,
                      setting(1024, 256, candidates="cache"), votes=False)),
          note="The first line is the whole difference; the others change one thing each, to tell causes apart. Rows of"
               " a chunk of 1024 attend up to 1023 keys of their own chunk for free. With `cache`, a quarter is of"
               " history and chunk.",
          figures=("chunk_size", "n_sel_queries")),
    Claim("pairing", "algorithm 1, line 8",
          "Averaging queries of the same rank (read literally) is better than of the same position order, or than one"
          " set of rows per group.", "not stated, no comparison", "pairing",
          {"rank (literal)": RANK, "position": POSITION, "one set per group": PER_GROUP, **REFERENCES},
          (Comparison("rank instead of position", RANK, POSITION),
           Comparison("rank instead of one set per group", RANK, PER_GROUP)), by_budget=True,
          figures=("pairing", "query_scope")),
    Claim("candidates", "algorithms 1 and 2",
          "With as many attended keys, chunk and history apart (history) is better than one budget for both (cache).",
          "sources conflict on which one was run", "candidates",
          {"history (default here)": {**QUOKA, **HISTORY}, "cache, the same budget": {**QUOKA, **CACHE},
           "oracle, history": {**ORACLE, **HISTORY}, "random, history": {**RANDOM, **HISTORY},
           "oracle, cache": {**ORACLE, **CACHE}, "random, cache": {**RANDOM, **CACHE}},
          (Comparison("history instead of cache with 128 keys more", {**QUOKA, **HISTORY}, {**QUOKA, **CACHE},
                      budget_shift=128),
           Comparison("history instead of cache, the same budget", {**QUOKA, **HISTORY}, {**QUOKA, **CACHE},
                      votes=False)),
          rule=Better(("error", "tail", "needle")),
          note="Mass recall counts history only, and cache spends a part of its budget on the chunk, so it does not"
               " vote. A row of a chunk of 128 sees up to 128 keys of its own chunk, so cache gets 128 keys more in the"
               " first line.",
          by_budget=True,
          figures=("candidates",)),
    Claim("aggregation_order", "algorithm 1, lines 8 to 10",
          "Taking the mean over the heads of a group first, then the maximum over queries, is best.",
          "no comparison", "aggregation_order",
          **switch("head_aggregation", "mean_first", "mean_after", "max_after"), by_budget=True,
          figures=("head_aggregation",)),
    Claim("query_mean", "algorithm 1, line 2", "The mean of the raw queries is better than that of unit queries.",
          "no comparison", "query_mean", **switch("query_mean", "raw", "normalized"), by_budget=True,
          figures=("query_mean",)),
    Claim("forced_keys", "not in the paper", "Nothing is gained by always keeping the first or the last keys.", "-",
          "forced_keys",
          {"nothing forced (the paper)": forced(0, 0), "first 4": forced(4, 0), "last 64": forced(0, 64),
           "first 4 and last 64": forced(4, 64), "sink_recent, first 4 (StreamingLLM)": STREAMING,
           "oracle (ceiling of kept attention)": ORACLE,
           "random (floor)": {**RANDOM, "keep_first": 0, "keep_recent": 0},
           "random, first 4": {**RANDOM, "keep_first": 4, "keep_recent": 0}},
          (*(Comparison(f"nothing forced instead of {name}", forced(0, 0), other) for name, other in (
              ("first 4", forced(4, 0)), ("last 64", forced(0, 64)), ("first 4 and last 64", forced(4, 64)))),
           Comparison("quoka, first 4, instead of StreamingLLM", forced(4, 0), STREAMING, votes=False)),
          figures=("keep_first", "keep_recent")),
    Claim("chunk_offset", "not in the paper", "It does not matter where chunks begin.", "-", "chunk_offset",
          {f"offset {n}": offset(n) for n in (0, 32, 64, 96)} | {
              "oracle, offset 0": {**ORACLE, "chunk_offset": 0}, "random, offset 0": {**RANDOM, "chunk_offset": 0}},
          tuple(Comparison(f"offset {n} instead of 0", offset(n), offset(0)) for n in (32, 64, 96)),
          rule=Within(0.03, ("error", "needle"), two_sided=True),
          note="The first measured chunk begins up to 96 tokens earlier than with offset 0.",
          figures=("chunk_offset",)),
]


@dataclass(frozen=True)
class OpenItem:
    """A question that a replay might settle, and where the report answers it, or why it does not."""

    question: str
    claims: Tuple[str, ...] = ()
    remark: str = ""


OPEN_ITEMS = [
    OpenItem("Which queries should choose the keys?", ("query_rule",)),
    OpenItem("Candidate set and pairing, two ambiguities as switches", ("candidates", "pairing")),
    OpenItem("Does the geometry of figures 2 and 3 hold in every layer and head?",
             ("figure_2a", "figure_2b", "figure_2c", "figure_3", "theorem_1")),
    OpenItem("Sweeps of chunk size, queries and budget", ("table_11", "table_12", "tables_5_6"),
             "One at a time, not their full product."),
    OpenItem("Scoring and aggregation", ("table_9", "table_10", "aggregation_order", "query_mean"),
             "Not settled: norm-weighted scores, log-sum-exp and the mean of the top m are no switches here."),
    OpenItem("Forced first and last keys; the own chunk", ("forced_keys", "candidates")),
    OpenItem("Layers and heads", (), "Errors by layer are under Layers; budgets per layer are no switch, so an oracle"
                                     " over layers is not settled."),
    OpenItem("Numerics", (), "Ties go to the lower position; `floor_out_rel_l2` stands beside every error. Not settled:"
                             " scores in bfloat16 or float16 are no switch."),
    OpenItem("Where the time goes on a CPU", ("figure_5",), "Timed by `quoka-bench`: docs/performance.md."),
    OpenItem("Block pooling", (), "Not settled: selection of blocks is no switch here."),
    OpenItem("Errors that accumulate over layers", (), "Not settled: every layer is replayed on the inputs of the exact"
                                                       " model, so errors here are too small for a whole model."),
    OpenItem("Statistics", (), "Paired over prompts with intervals, oracle and random in every table."),
    OpenItem("Why a follow-up lost more at a quarter of the keys", ("followup",),
             "Not settled: its model, ties in bfloat16, task scores."),
]
