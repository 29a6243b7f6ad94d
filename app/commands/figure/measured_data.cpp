#include "app/commands/figure/measured_data.h"

#include <cmath>
#include <sstream>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/base/json_limits.h"
#include "engine/base/paths.h"

namespace hydrascope::app {

namespace {

using nlohmann::json;

constexpr const char* curve_remedy = "name the file that distill or finetune wrote by --curve";
constexpr const char* bench_remedy = "name what `hydrascope bench kernels --json` printed";
constexpr const char* recall_remedy = "name a JSON list of {kernel, accuracy, entropy}";

// The fields of an entry, checked. All errors are BrokenFile and name the file, the kernel and the field.
class EntryFields {
public:
  EntryFields(const json& entry, const std::filesystem::path& file, const char* remedy)
      : entry_(entry), file_(file), remedy_(remedy) {
    if (!entry.is_object() || !entry.contains("kernel") || !entry["kernel"].is_string())
      throw BrokenFile(file.string(), "an entry names no kernel", remedy);
    kernel_ = entry["kernel"].get<std::string>();
  }

  const std::string& kernel() const { return kernel_; }
  bool has(const char* name) const { return entry_.contains(name); }

  double number(const char* name) const {
    if (!has(name) || !entry_[name].is_number()) fail(fmt::format("has no number as {}", name));
    return entry_[name].get<double>();
  }
  double number(const char* name, const double fallback) const { return has(name) ? number(name) : fallback; }
  std::optional<double> number_or_null(const char* name) const {
    return has(name) && entry_[name].is_null() ? std::nullopt : std::optional(number(name));
  }
  std::optional<std::int64_t> integer_if_any(const char* name) const {
    if (!has(name)) return std::nullopt;
    constexpr double most = 1e15; // such a double is exact
    const double value = number(name);
    if (value != std::trunc(value) || std::abs(value) > most)
      fail(fmt::format("has no whole number as {}", name));
    return static_cast<std::int64_t>(value);
  }
  std::string text_if_any(const char* name) const {
    if (!has(name)) return {};
    if (!entry_[name].is_string()) fail(fmt::format("has no text as {}", name));
    return entry_[name].get<std::string>();
  }

private:
  [[noreturn]] void fail(const std::string& reason) const {
    throw BrokenFile(file_.string(), fmt::format("the entry of {} {}", kernel_, reason), remedy_);
  }

  const json& entry_;
  const std::filesystem::path& file_;
  const char* remedy_;
  std::string kernel_;
};

// What `read` makes of each measured entry of a JSON list.
template <typename Read>
auto read_entries(const std::filesystem::path& file, const char* remedy, const Read& read) {
  const auto list = parse_json<json>(read_text_file(file));
  if (!list.is_array() || list.empty()) throw ForeignFile(file.string(), "is no JSON list", remedy);
  std::vector<decltype(read(std::declval<const EntryFields&>()))> records;
  for (const json& entry : list) {
    const EntryFields fields(entry, file, remedy);
    if (!fields.has("skipped")) records.push_back(read(fields));
  }
  return records;
}

} // namespace

LinesPanel::Line read_curve(const std::filesystem::path& file) {
  std::istringstream text(read_text_file(file));
  std::string row;
  std::getline(text, row);
  if (!row.starts_with("step,loss"))
    throw ForeignFile(file.string(), "is no loss curve: its first line is not step,loss", curve_remedy);
  LinesPanel::Line line;
  for (int number = 2; std::getline(text, row); ++number) {
    double step = 0, loss = 0;
    char comma = 0;
    if (!(std::istringstream(row) >> step >> comma >> loss) || comma != ',')
      throw BrokenFile(file.string(), fmt::format("line {} is not step,loss: '{}'", number, row),
                       curve_remedy);
    line.x.push_back(step);
    line.y.push_back(loss);
  }
  if (line.x.empty()) throw BrokenFile(file.string(), "holds no step", curve_remedy);
  return line;
}

std::vector<RooflineRecord> read_roofline_records(const std::filesystem::path& file) {
  return read_entries(file, bench_remedy, [](const EntryFields& fields) {
    const auto tokens = fields.integer_if_any("N");
    return RooflineRecord{
        .kernel = fields.kernel(),
        .device = fields.text_if_any("device"),
        .dtype = fields.text_if_any("dtype"),
        .flops_per_second = fields.number("flops_per_second"),
        .bytes_per_second = fields.number("bytes_per_second"),
        .share_of_bandwidth = fields.number("share_of_bandwidth"),
        .share_of_flops = fields.number("share_of_flops"),
        .size = fields.number("H", 1) * static_cast<double>(tokens.value_or(0)) * fields.number("d", 1),
        .tokens = tokens,
    };
  });
}

std::vector<RecallRecord> read_recall_records(const std::filesystem::path& file) {
  return read_entries(file, recall_remedy, [](const EntryFields& fields) {
    return RecallRecord{.kernel = fields.kernel(),
                        .accuracy = fields.number("accuracy"),
                        .entropy = fields.number_or_null("entropy")};
  });
}

} // namespace hydrascope::app
