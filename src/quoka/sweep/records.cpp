// The only file of this room that knows nlohmann-json.
#include "quoka/sweep/records.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "quoka/core/build_info.hpp"
#include "quoka/core/error.hpp"
#include "quoka/metrics/columns.hpp"
#include "quoka/results/provenance.hpp"

namespace quoka {
namespace {

using Json = nlohmann::ordered_json;

Json captures_json(const SweepPlan& plan) {
  Json captures = Json::array();
  for (const PlanCapture& capture : plan.captures) {
    Json layers = Json::array();
    for (const PlanLayer& layer : capture.layers) {
      layers.push_back(layer.layer_idx);
    }
    captures.push_back({{"path", capture.path},
                        {"stem", capture.stem},
                        {"sha256", capture.sha256},
                        {"layers", layers}});
  }
  return captures;
}

/// Paths need not be UTF-8, JSON must be.
std::string dump(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string plan_json(const SweepPlan& plan) {
  Json configs = Json::object();
  for (std::size_t i = 0; i < plan.configs.size(); ++i) {
    configs[plan.config_ids[i]] = plan.config_texts[i];
  }
  const Json json{{"format", "quoka-plan"},
                  {"plan_hash", plan.hash},
                  {"program_version", std::string(build_info().version)},
                  {"metric_version", metric_version},
                  {"sink_size", plan.constants.sink_size},
                  {"min_history", plan.constants.min_history},
                  {"by_chunk", plan.constants.by_chunk},
                  {"selections", plan.constants.selections},
                  {"captures", captures_json(plan)},
                  {"configs", configs}};
  return dump(json);
}

std::string failure_json(const FailureRecord& failure) {
  return dump({{"unit_id", failure.unit_id},
               {"capture", failure.capture},
               {"layer", failure.layer_idx},
               {"reason", failure.reason},
               {"time_utc", utc_now()},
               {"host", host_name()},
               {"cell_ids", failure.cell_ids}});
}

FailureRecord parse_failure(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    return {json.at("unit_id"), json.at("capture"), json.at("layer"), json.at("reason"),
            json.at("cell_ids")};
  } catch (const nlohmann::json::exception& error) {
    throw FormatError(fmt::format("failure record is not readable: {}", error.what()));
  }
}

}  // namespace quoka
