#include "quoka/check/metric.hpp"

#include <cmath>
#include <limits>

#include "quoka/core/error.hpp"
#include "support/catch.hpp"
#include "unit/check/flat_results.hpp"

using namespace quoka;

namespace {

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();

Observation observe_all(const Results& results, const std::string& metric) {
  return observe(results, 0, layer_groups(results.axes, LayerGrouping::all).front(),
                 check_metric(metric));
}

}  // namespace

TEST_CASE("a metric knows its direction and statistic and tolerance", "[check][metric]") {
  const CheckMetric tail = check_metric("out_rel_l2_p99");
  CHECK(tail.better == Better::lower);
  CHECK(tail.statistic == HeadStatistic::worst_head);
  CHECK(tail.tolerance == Tolerance{1e-5, 0.15});
  const CheckMetric share = check_metric("mass_recall_no_sink_mean");
  CHECK(share.better == Better::higher);
  CHECK(share.statistic == HeadStatistic::mean);
  CHECK(share.tolerance == Tolerance{0.01, 0});
  CHECK(check_metric("out_rel_l2_p50").statistic == HeadStatistic::mean);
  CHECK(check_metric("needle_key_recall").tolerance == Tolerance{0.1, 0});
  CHECK(check_metric("needle_key_recall_n_valid").tolerance == Tolerance{});
  CHECK(check_metric("n_rows").better == Better::neither);
  CHECK(check_metric("floor_out_rel_l2").better == Better::lower);
  CHECK_THROWS_AS(check_metric("out_rel_l2"), ConfigError);
}

TEST_CASE("the default metrics exist and include a tail and both needles", "[check][metric]") {
  std::string names;
  for (const CheckMetric& metric : default_check_metrics()) {
    names += metric.name + " ";
  }
  CHECK(names ==
        "mass_recall_no_sink_mean out_rel_l2_mean out_rel_l2_p99 oracle_ratio needle_key_recall "
        "needle_mass_recall floor_out_rel_l2 ");
}

TEST_CASE("a mean is taken over the heads of all layers of the group", "[check][metric]") {
  Results results = test::flat_results(2);
  test::set_heads(results, "out_rel_l2_mean", 0, 0, 0.125F, 0.25F);
  test::set_heads(results, "out_rel_l2_mean", 0, 1, 0.5F, 0.125F);
  const Observation found = observe_all(results, "out_rel_l2_mean");
  CHECK(found.value == 0.25);  // (1/8 + 1/4 + 1/2 + 1/8) / 4
  CHECK(found.n_values == 4);
  CHECK(found.n_undefined == 0);
  CHECK(found.n_missing_cells == 0);
}

TEST_CASE("P31 the worst head is seen however good the others are", "[check][metric]") {
  Results results = test::flat_results(2);
  test::set_heads(results, "out_rel_l2_p99", 0, 1, 0.0F, 0.75F);
  CHECK(observe_all(results, "out_rel_l2_p99").value == 0.75);
  test::set_heads(results, "mass_recall_worst", 0, 0, 1.0F, 0.25F);
  CHECK(observe_all(results, "mass_recall_worst").value == 0.25);
}

TEST_CASE("heads without a finite number are counted and left out", "[check][metric]") {
  Results results = test::flat_results(2);
  test::set_heads(results, "kl_mean", 0, 0, nan_value, 0.25F);
  test::set_heads(results, "kl_mean", 0, 1, std::numeric_limits<float>::infinity(), nan_value);
  const Observation some = observe_all(results, "kl_mean");
  CHECK(some.value == 0.25);
  CHECK(some.n_values == 1);
  CHECK(some.n_undefined == 3);
  test::set_heads(results, "kl_mean", 0, 0, nan_value, nan_value);
  const Observation none = observe_all(results, "kl_mean");
  CHECK(std::isnan(none.value));
  CHECK(none.n_values == 0);
}

TEST_CASE("heads that a capture lacks are not undefined values", "[check][metric]") {
  Results results = test::flat_results(1);
  results.axes.layer_facts[0].shape.n_q_heads = 1;
  test::set_heads(results, "kl_mean", 0, 0, 0.25F, nan_value);
  const Observation found = observe_all(results, "kl_mean");
  CHECK(found.value == 0.25);
  CHECK(found.n_undefined == 0);
}

TEST_CASE("a layer that was not computed is counted as missing", "[check][metric]") {
  Results results = test::flat_results(2);
  test::set_heads(results, "n_rows", 0, 1, nan_value, nan_value);
  CHECK(observe_all(results, "kl_mean").n_missing_cells == 1);
}
