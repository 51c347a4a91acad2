#include "quoka/sweep/progress.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace quoka {
namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

std::string duration_text(double seconds) {
  const auto whole = static_cast<Index>(std::ceil(seconds));
  const Index hours = whole / 3600;
  const Index minutes = whole / 60 % 60;
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60)
                   : fmt::format("{}:{:02}", minutes, whole % 60);
}

Progress::Progress(ProgressStyle style, Index n_units, double total_flops)
    : style_(style), n_units_(n_units), total_flops_(std::max(total_flops, 1.0)) {}

Progress::~Progress() { clear_line(); }

void Progress::start_unit(const std::string& name, double flops) {
  name_ = name;
  unit_flops_ = flops;
  unit_begin_ = Clock::now();
  draw(0);
}

void Progress::update(double done) {
  constexpr std::chrono::milliseconds redraw_interval(100);
  if (Clock::now() - drawn_ >= redraw_interval) {
    draw(done);
  }
}

void Progress::finish_unit(const std::string& what) {
  ++unit_;
  finished_flops_ += unit_flops_;
  clear_line();
  if (style_ == ProgressStyle::log) {
    spdlog::info("unit {}/{}: {}: {}, {:.1f} s; about {} left", unit_, n_units_, name_, what,
                 seconds_since(unit_begin_), time_left(finished_flops_ / total_flops_));
  }
}

std::string Progress::time_left(double share) const {
  constexpr double enough = 1e-3;  // below this share the estimate would be noise
  return share > enough ? duration_text(seconds_since(begin_) * (1 - std::min(share, 1.0)) / share)
                        : "?";
}

void Progress::draw(double done) {
  if (style_ != ProgressStyle::line) {
    return;
  }
  drawn_ = Clock::now();
  const double share = (finished_flops_ + done * unit_flops_) / total_flops_;
  fmt::print(stderr, "\r\033[K{:3.0f} %  unit {}/{}  {} left  {:.40}", 100 * std::min(share, 1.0),
             unit_ + 1, n_units_, time_left(share), name_);
  std::fflush(stderr);
}

void Progress::clear_line() const {
  if (style_ == ProgressStyle::line) {
    fmt::print(stderr, "\r\033[K");
    std::fflush(stderr);
  }
}

}  // namespace quoka
