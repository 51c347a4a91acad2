#include "quoka/check/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace quoka {
namespace {

/// The first row holds the titles.
using Table = std::vector<std::vector<std::string>>;

std::string number(double value) {
  return std::isnan(value) ? "undefined" : fmt::format("{:.5g}", value);
}

std::string statistic_word(const ProfileRow& row) {
  return row.statistic == HeadStatistic::mean ? "mean" : "worst head";
}

std::string direction_word(Better better) {
  return better == Better::higher ? "higher" : better == Better::lower ? "lower" : "neither";
}

/// What one line of the summary counts.
struct MetricSummary {
  Index n_rows = 0;
  Index n_failed = 0;
  Index n_improved = 0;
  double nearest = 0;  ///< largest change for the worse as a share of the tolerance
};

/// Change for the worse (either way without direction) over the tolerance; 0 where undefined.
double share_used(const ComparedRow& compared) {
  const ProfileRow& row = compared.row;
  const double change = compared.found.value - row.expected;
  const double loss = row.better == Better::higher  ? -change
                      : row.better == Better::lower ? change
                                                    : std::abs(change);
  return std::isnan(loss) || loss <= 0 ? 0 : loss / row.tolerance;
}

MetricSummary summarize(const Comparison& comparison, const std::string& metric) {
  MetricSummary summary;
  for (const ComparedRow& compared : comparison.rows) {
    if (compared.row.metric == metric) {
      ++summary.n_rows;
      summary.n_failed += is_failure(compared.outcome) ? 1 : 0;
      summary.n_improved += compared.outcome == Outcome::improved ? 1 : 0;
      summary.nearest = std::fmax(summary.nearest, share_used(compared));
    }
  }
  return summary;
}

Table summary_table(const Comparison& comparison) {
  Table table{{"metric", "better", "rows", "failed", "improved", "tolerance used"}};
  std::vector<std::string> seen;
  for (const ComparedRow& compared : comparison.rows) {
    const std::string& metric = compared.row.metric;
    if (std::ranges::find(seen, metric) != seen.end()) {
      continue;
    }
    seen.push_back(metric);
    const MetricSummary summary = summarize(comparison, metric);
    table.push_back({metric, direction_word(compared.row.better), fmt::format("{}", summary.n_rows),
                     fmt::format("{}", summary.n_failed), fmt::format("{}", summary.n_improved),
                     fmt::format("{:.0f}%", 100 * summary.nearest)});
  }
  return table;
}

std::vector<std::string> difference_line(const Comparison& comparison,
                                         const ComparedRow& compared) {
  const ProfileRow& row = compared.row;
  const double change = compared.found.value - row.expected;
  return {std::string(name_of(compared.outcome)),
          row.group,
          row.metric,
          statistic_word(row),
          number(row.expected),
          compared.outcome == Outcome::missing ? "missing" : number(compared.found.value),
          std::isnan(change) ? "" : fmt::format("{:+.3g}", change),
          std::isnan(row.expected) ? "" : fmt::format("{:.3g}", row.tolerance),
          comparison.labels.at(row.config)};
}

/// Every row that is not equal, failures first.
Table difference_table(const Comparison& comparison) {
  Table table{{"outcome", "layers", "metric", "statistic", "expected", "found", "change",
               "tolerance", "configuration"}};
  for (const bool failures : {true, false}) {
    for (const ComparedRow& compared : comparison.rows) {
      if (compared.outcome != Outcome::equal && is_failure(compared.outcome) == failures) {
        table.push_back(difference_line(comparison, compared));
      }
    }
  }
  return table;
}

std::string verdict(const Comparison& comparison) {
  const Index n_failed = comparison.n_failures();
  std::string text = fmt::format("{}: {} of {} rows failed", n_failed == 0 ? "passed" : "FAILED",
                                 n_failed, comparison.rows.size());
  std::string separator = " (";
  for (const Outcome outcome : {Outcome::worse, Outcome::changed, Outcome::undefined,
                                Outcome::missing, Outcome::improved, Outcome::appeared}) {
    const Index n = comparison.count(outcome);
    if (n > 0) {
      text += fmt::format("{}{} {}", separator, n, name_of(outcome));
      separator = ", ";
    }
  }
  return text + (separator == ", " ? ")" : "");
}

std::string aligned(const Table& table) {
  std::vector<std::size_t> widths(table.front().size(), 0);
  for (const auto& line : table) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      widths[i] = std::max(widths[i], line[i].size());
    }
  }
  std::string text;
  for (const auto& line : table) {
    std::string padded;
    for (std::size_t i = 0; i < line.size(); ++i) {
      padded += fmt::format("{:<{}}  ", line[i], widths[i]);
    }
    padded.erase(padded.find_last_not_of(' ') + 1);
    text += padded + "\n";
  }
  return text;
}

/// What would end a cell or a line of a table.
std::string markdown_escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|' || c == '<' || c == '\\' || c == '`' || c == '*' || c == '_') {
      escaped += '\\';
    }
    escaped += c == '\n' || c == '\r' ? ' ' : c;
  }
  return escaped;
}

std::string markdown_table(const Table& table) {
  std::string text;
  for (std::size_t i = 0; i < table.size(); ++i) {
    text += "|";
    for (const std::string& cell : table[i]) {
      text += " " + markdown_escaped(cell) + " |";
    }
    text += "\n";
    if (i == 0) {
      for (std::size_t c = 0; c < table[i].size(); ++c) {
        text += c == 0 ? "| --- |" : " --- |";
      }
      text += "\n";
    }
  }
  return text;
}

/// For attributes and text. Control characters, which XML 1.0 cannot hold, and bytes beyond ASCII,
/// which need not be UTF-8 in a results file, become question marks.
std::string xml_escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c >= ' ' && c <= '~' ? c : '?';
    }
  }
  return escaped;
}

std::string junit_case(const Comparison& comparison, const ComparedRow& compared) {
  const ProfileRow& row = compared.row;
  const std::string message =
      fmt::format("{}: expected {} +- {:.3g} ({} is better), found {}", name_of(compared.outcome),
                  number(row.expected), row.tolerance, direction_word(row.better),
                  compared.outcome == Outcome::missing ? "nothing" : number(compared.found.value));
  const std::string head =
      fmt::format("  <testcase classname=\"{}\" name=\"{}\" time=\"0\"", xml_escaped(row.group),
                  xml_escaped(fmt::format("{} ({}) {}", row.metric, statistic_word(row),
                                          comparison.labels.at(row.config))));
  if (is_failure(compared.outcome)) {
    return fmt::format("{}>\n   <failure type=\"{}\" message=\"{}\"/>\n  </testcase>\n", head,
                       name_of(compared.outcome), xml_escaped(message));
  }
  if (compared.outcome != Outcome::equal) {
    return fmt::format("{}>\n   <system-out>{}</system-out>\n  </testcase>\n", head,
                       xml_escaped(message));
  }
  return head + "/>\n";
}

}  // namespace

std::string report_text(const Comparison& comparison) {
  std::string text;
  for (const std::string& note : comparison.notes) {
    text += note + "\n";
  }
  text += "\n" + aligned(summary_table(comparison)) + "\n";
  const Table differences = difference_table(comparison);
  if (differences.size() > 1) {
    text += aligned(differences) + "\n";
  }
  return text + verdict(comparison) + "\n";
}

std::string report_markdown(const Comparison& comparison) {
  std::string text = fmt::format("## quoka-check {}\n\n", markdown_escaped(verdict(comparison)));
  for (const std::string& note : comparison.notes) {
    text += "- " + markdown_escaped(note) + "\n";
  }
  text += "\n" + markdown_table(summary_table(comparison));
  const Table differences = difference_table(comparison);
  if (differences.size() > 1) {
    text += "\n" + markdown_table(differences);
  }
  return text;
}

std::string report_junit(const Comparison& comparison) {
  std::string text = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites>\n <testsuite name=\"quoka-check\" tests=\"{}\" failures=\"{}\" errors=\"0\" "
      "skipped=\"0\" time=\"0\">\n  <properties>\n",
      comparison.rows.size(), comparison.n_failures());
  for (std::size_t i = 0; i < comparison.notes.size(); ++i) {
    text += fmt::format("   <property name=\"note_{}\" value=\"{}\"/>\n", i,
                        xml_escaped(comparison.notes[i]));
  }
  text += "  </properties>\n";
  for (const ComparedRow& compared : comparison.rows) {
    text += junit_case(comparison, compared);
  }
  return text + " </testsuite>\n</testsuites>\n";
}

}  // namespace quoka
