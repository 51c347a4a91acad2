#include "quoka/sweep/part_store.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <sstream>

#include "quoka/core/atomic_file.hpp"
#include "quoka/core/error.hpp"

namespace quoka {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view part_suffix = ".h5";
constexpr std::string_view failure_suffix = ".fail.json";

std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->is_regular_file()) {
      files.push_back(entry->path());
    }
  }
  std::ranges::sort(files);  // the order of a directory is arbitrary
  return files;
}

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

/// Process id in a name like ".<name>.<pid>.<counter>.tmp" (core/atomic_file.hpp); 0 if it has
/// none.
pid_t owner_of(const std::string& name) {
  if (!name.starts_with('.') || !name.ends_with(".tmp")) {
    return 0;
  }
  const std::size_t counter = name.rfind('.', name.size() - 5);
  const std::size_t pid = name.rfind('.', counter - 1) + 1;
  pid_t value = 0;
  const auto [end, error] = std::from_chars(name.data() + pid, name.data() + counter, value);
  return error == std::errc{} && end == name.data() + counter ? value : 0;
}

void remove_if_abandoned(const fs::path& path) {
  const pid_t owner = owner_of(path.filename().string());
  const bool abandoned = owner > 0 && kill(owner, 0) != 0 && errno == ESRCH;
  if (abandoned) {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  require<IoError>(!error,
                   "folder {} cannot be made: {} (finished work is kept there); choose "
                   "another out",
                   folder.string(), error.message());
}

/// Calls read(); a damaged file becomes a warning and a default value.
template <typename Read>
auto value_or_warning(Read read, std::vector<std::string>& warnings) -> decltype(read()) {
  try {
    return read();
  } catch (const FormatError& error) {
    warnings.push_back(fmt::format("{}; its work is done again", error.what()));
    return {};
  }
}

FailureRecord read_failure(const fs::path& path) {
  try {
    return parse_failure(read_text(path));
  } catch (const FormatError& error) {
    throw FormatError(fmt::format("{}: {}", path.string(), error.what()));
  }
}

/// The cells that a part or a failure record stands for; none if the file is damaged.
std::vector<std::string> cells_of(const fs::path& path) {
  std::vector<std::string> ignored;
  if (path.string().ends_with(failure_suffix)) {
    return value_or_warning([&] { return read_failure(path); }, ignored).cell_ids;
  }
  return value_or_warning([&] { return read_part_ids(path); }, ignored);
}

}  // namespace

PartStore::PartStore(const fs::path& out) : out_(out), folder_(out.string() + ".parts") {}

void PartStore::prepare(const SweepPlan& plan) const {
  require<IoError>(!fs::is_directory(out_), "out {} is a folder, not a file; choose another out",
                   out_.string());
  make_folder(folder_ / "shards");
  const fs::path parent = fs::absolute(out_).parent_path();
  require<IoError>(access(parent.c_str(), W_OK) == 0,
                   "folder {} is not writable (the results file goes there); choose another out",
                   parent.string());
  for (const fs::path& path : files_below(folder_)) {
    remove_if_abandoned(path);
  }
  for (const auto& entry : fs::directory_iterator(parent)) {
    if (entry.path().filename().string().starts_with("." + out_.filename().string() + ".")) {
      remove_if_abandoned(entry.path());
    }
  }
  write_file_atomically(folder_ / "plan.json", plan_json(plan));
}

PartIndex PartStore::scan() const {
  PartIndex index;
  for (const fs::path& path : files_below(folder_ / "shards")) {
    const std::string name = path.filename().string();
    if (name.starts_with('.')) {
      continue;  // a temporary file
    }
    if (name.ends_with(part_suffix)) {
      const auto ids = value_or_warning([&] { return read_part_ids(path); }, index.warnings);
      for (const std::string& id : ids) {
        index.cells.emplace(id, path);
      }
    } else if (name.ends_with(failure_suffix)) {
      auto failure = value_or_warning([&] { return read_failure(path); }, index.warnings);
      if (!failure.cell_ids.empty()) {
        index.failures.push_back(std::move(failure));
      }
    }
  }
  return index;
}

fs::path PartStore::file(const std::string& unit_id, const std::string& suffix) const {
  return folder_ / "shards" / unit_id.substr(0, 2) / (unit_id + suffix);
}

fs::path PartStore::save(const Part& part) const {
  const fs::path path = file(part.unit_id, std::string(part_suffix));
  make_folder(path.parent_path());
  write_file_atomically(path, encode_part(part));
  std::error_code ignored;
  fs::remove(file(part.unit_id, std::string(failure_suffix)), ignored);
  return path;
}

void PartStore::save(const FailureRecord& failure) const {
  const fs::path path = file(failure.unit_id, std::string(failure_suffix));
  make_folder(path.parent_path());
  write_file_atomically(path, failure_json(failure));
}

void PartStore::remove_merged(const std::unordered_set<std::string>& merged) const {
  std::error_code ignored;
  for (const fs::path& path : files_below(folder_ / "shards")) {
    const auto in_merged = [&](const std::string& id) { return merged.contains(id); };
    if (std::ranges::all_of(cells_of(path), in_merged)) {  // a damaged file holds nothing
      fs::remove(path, ignored);
    }
  }
  if (files_below(folder_ / "shards").empty()) {
    fs::remove_all(folder_, ignored);
  }
}

}  // namespace quoka
