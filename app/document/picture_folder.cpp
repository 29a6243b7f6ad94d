#include "app/document/picture_folder.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>
#include <tuple>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/image.h"
#include "engine/base/text.h"
#include "engine/run/predicted_number.h"
#include "engine/run/quantities/head_quantity.h"

namespace hydrascope::app {

namespace {

namespace fs = std::filesystem;

// Folder names often have underscores in place of spaces.
std::string normalised_class_name(std::string_view name) {
  std::string plain = lower_case(name);
  std::ranges::replace(plain, '_', ' ');
  return plain;
}

void add_pictures(PictureFolder& folder, const fs::path& from, const std::string& label) {
  for (const auto& entry : fs::directory_iterator(from, fs::directory_options::skip_permission_denied)) {
    if (entry.is_regular_file() && has_picture_ending(entry.path()))
      folder.pictures.push_back({entry.path(), label});
  }
}

int class_index(const RunResult& run, const std::string& label) {
  for (auto adapter = run.adapters.rbegin(); adapter != run.adapters.rend(); ++adapter) {
    if (adapter->classes.size() != run.predictions.size()) continue;
    const auto found = std::ranges::find(adapter->classes, label, &AdapterInfo::Class::id);
    if (found != adapter->classes.end()) return static_cast<int>(found - adapter->classes.begin());
  }
  const std::string wanted = normalised_class_name(label);
  for (const Prediction& prediction : run.predictions) {
    const std::string name = normalised_class_name(prediction.label);
    if (name == wanted || name.substr(0, name.find(',')) == wanted) return prediction.index;
  }
  return -1;
}

} // namespace

PictureFolder list_pictures(const fs::path& path) {
  PictureFolder folder;
  folder.path = path;
  try {
    add_pictures(folder, path, "");
    const bool loose = !folder.pictures.empty();
    for (const auto& entry : fs::directory_iterator(path)) {
      if (entry.is_directory()) add_pictures(folder, entry.path(), entry.path().filename().string());
    }
    folder.labelled = !loose && !folder.pictures.empty();
  } catch (const fs::filesystem_error& error) {
    throw Error(path.string(), error.code().message(), "check its permissions");
  }
  if (folder.pictures.empty())
    throw Error(path.string(), "holds no pictures",
                "open a folder with pictures, or with a sub-folder per class");
  std::ranges::sort(folder.pictures, [](const FolderPicture& a, const FolderPicture& b) {
    return std::tie(a.label, a.file) < std::tie(b.label, b.file);
  });
  return folder;
}

std::optional<std::size_t> find_picture(const PictureFolder& folder, const fs::path& file) {
  const auto found = std::ranges::find(folder.pictures, file, &FolderPicture::file);
  if (found == folder.pictures.end()) return std::nullopt;
  return static_cast<std::size_t>(found - folder.pictures.begin());
}

std::optional<bool> is_right(const RunResult& run, const std::string& label) {
  if (run.predictions.empty()) return std::nullopt;
  const int index = class_index(run, label);
  if (index < 0) return std::nullopt;
  return run.predictions.front().index == index;
}

std::vector<std::size_t> shown_order(const PictureFolder& folder, bool wrong_first,
                                     const PictureChecks& checks) {
  std::vector<std::size_t> order(folder.pictures.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (!wrong_first) return order;
  const auto rank = [&](std::size_t index) -> std::pair<int, double> {
    const auto found = checks.found.find(folder.pictures[index].file);
    if (found == checks.found.end() || found->second.verdict == PictureCheck::Verdict::unknown) return {1, 0};
    const bool wrong = found->second.verdict == PictureCheck::Verdict::wrong;
    return {wrong ? 0 : 2, wrong ? -found->second.probability : found->second.probability};
  };
  std::ranges::stable_sort(order, {}, rank);
  return order;
}

namespace {

constexpr double probability_floor = 1e-12;

double mean_of_table(const RunResult& run, const std::string& name) {
  double sum = 0;
  int count = 0;
  if (const HeadTable* table = run.quantities.find(HeadTableKey{name})) {
    for (const float value : table->values.values) {
      if (std::isnan(value)) continue;
      sum += static_cast<double>(value);
      ++count;
    }
  }
  return count > 0 ? sum / count : PictureMeasures::undefined;
}

// KL(softmax's ‖ own); of independent labels it is the sum of each label's.
double class_divergence(const RunResult& softmax, const RunResult& own) {
  if (softmax.predictions.empty() || softmax.predictions.size() != own.predictions.size())
    return PictureMeasures::undefined;
  const auto term = [](const double p, const double q) {
    return p * (std::log(std::max(p, probability_floor)) - std::log(std::max(q, probability_floor)));
  };
  std::map<int, double> probabilities;
  for (const Prediction& each : own.predictions) probabilities[each.index] = each.probability;
  double sum = 0;
  for (const Prediction& each : softmax.predictions) {
    const double probability = probabilities[each.index];
    sum += term(each.probability, probability);
    if (softmax.model.independent_labels) sum += term(1 - each.probability, 1 - probability);
  }
  return sum;
}

double column_number(const PictureMeasures& measures, FolderColumn column) {
  switch (column) {
    case FolderColumn::own_probability: return measures.own_probability;
    case FolderColumn::divergence: return measures.divergence;
    case FolderColumn::entropy: return measures.entropy;
    case FolderColumn::kl: return measures.kl;
    default: return PictureMeasures::undefined;
  }
}

std::string column_text(const PictureMeasures& measures, FolderColumn column) {
  if (column == FolderColumn::own_class) return measures.own_class;
  if (column == FolderColumn::softmax_class) return measures.softmax_class;
  return measures.picture.label + "/" + measures.picture.file.filename().string();
}

} // namespace

PictureMeasures measures_of(const RunResult& own, const RunResult& softmax) {
  PictureMeasures measures;
  if (!own.predictions.empty() && !softmax.predictions.empty() && !predicts_number(own.model)) {
    measures.own_class = own.predictions.front().label;
    measures.own_probability = own.predictions.front().probability;
    measures.softmax_class = softmax.predictions.front().label;
    measures.softmax_probability = softmax.predictions.front().probability;
    measures.divergence = class_divergence(softmax, own);
  }
  measures.entropy = mean_of_table(own, "entropy");
  measures.kl = mean_of_table(own, "kl");
  return measures;
}

void sort_measures(std::vector<PictureMeasures>& measures, FolderColumn column, bool descending) {
  const bool text = column == FolderColumn::name || column == FolderColumn::own_class ||
                    column == FolderColumn::softmax_class;
  std::ranges::stable_sort(measures, [&](const PictureMeasures& a, const PictureMeasures& b) {
    if (text)
      return descending ? column_text(b, column) < column_text(a, column)
                        : column_text(a, column) < column_text(b, column);
    const double first = column_number(a, column), second = column_number(b, column);
    if (std::isnan(first) || std::isnan(second)) return !std::isnan(first) && std::isnan(second);
    return descending ? second < first : first < second;
  });
}

} // namespace hydrascope::app
