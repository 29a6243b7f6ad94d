#include "engine/run/model_store.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <mutex>
#include <string_view>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/files.h"
#include "engine/base/paths.h"
#include "engine/base/safetensors.h"
#include "engine/models/capture/capture_model.h"
#include "engine/models/checkpoint/adapter_files.h"
#include "engine/models/transformer/model.h"
#include "engine/run/placement.h"

namespace hydrascope {
namespace {

// Few, because each may hold packed copies of its weights.
constexpr std::size_t kKeptBases = 4;
constexpr std::size_t kKeptOverlays = 6;
constexpr std::size_t kKeptAdapterFiles = 64;
constexpr std::size_t kKeptLists = 16;

AdapterParts parts_of(const AdapterInfo& adapter) {
  std::vector<std::string> names;
  const SafetensorsFile file = SafetensorsFile::open(adapter.path);
  for (const auto& [name, tensor] : file.tensors()) names.push_back(name);
  return adapter_parts(names);
}

// Feature maps and their exponents stay float32.
at::Tensor placed_tensor(const std::string& name, const at::Tensor& tensor, const Placement& placement) {
  const bool converts = tensor.is_floating_point() && !name.starts_with("kernel.");
  return tensor.to(placement.device, converts ? placement.dtype : tensor.scalar_type());
}

void keep_tails(std::vector<AdapterInfo>& adapters) {
  std::erase_if(adapters, [](const AdapterInfo& adapter) { return adapter.role != "tail"; });
}

// As placed(); tensors that the model shares with `base` are those of `placed_base`.
std::shared_ptr<const Model> placed_over(const std::shared_ptr<const Model>& model, const Model& base,
                                         const Model& placed_base, const Placement& placement) {
  if (model->info().capture) return placed_capture(model, placement.device, placement.dtype);
  const auto known = base.tensors(), there = placed_base.tensors();
  std::map<std::string, at::Tensor> moved;
  for (const auto& [name, tensor] : model->tensors()) {
    const auto shared = known.find(name);
    const bool same = shared != known.end() && shared->second.is_same(tensor);
    moved.emplace(name, same ? there.at(name) : placed_tensor(name, tensor, placement));
  }
  return model->with_parameters(moved);
}

} // namespace

// What a value is made from: a path, the stamp of what lies there, and other settings.
struct StoreKey {
  std::string path, stamp, settings = {};

  bool operator==(const StoreKey&) const = default;
};

// Values by key. The first thread that requests a value makes it, and others wait for it. Evicts the least
// recently used beyond `limit`, and those of a path that has changed since.
template <typename Value>
class SharedValues {
public:
  explicit SharedValues(std::size_t limit) : limit_(limit) {}

  Value get(const StoreKey& key, const std::function<Value()>& make) {
    std::promise<Value> promise;
    if (const std::shared_future<Value> known = find_or_add(key, promise); known.valid()) return known.get();
    try {
      Value value = make();
      promise.set_value(value);
      return value;
    } catch (...) {
      forget(key); // the next request tries again
      promise.set_exception(std::current_exception());
      throw;
    }
  }

  // Calls use(value) for those that are finished.
  template <typename Use>
  void each(const Use& use) {
    const std::lock_guard lock(mutex_);
    for (const Entry& entry : entries_)
      if (finished(entry)) use(entry.value.get());
  }
  // Forgets those of them that `is_unwanted` names.
  template <typename Test>
  void drop(const Test& is_unwanted) {
    const std::lock_guard lock(mutex_);
    std::erase_if(entries_,
                  [&](const Entry& entry) { return finished(entry) && is_unwanted(entry.value.get()); });
  }

private:
  struct Entry {
    StoreKey key;
    std::shared_future<Value> value;
  };

  static bool finished(const Entry& entry) {
    return entry.value.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }

  // The key's value, finished or in progress; else an invalid future, after storing the promise's.
  std::shared_future<Value> find_or_add(const StoreKey& key, std::promise<Value>& promise) {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(entries_, key, &Entry::key);
    if (found != entries_.end()) {
      std::rotate(found, found + 1, entries_.end());
      return entries_.back().value;
    }
    std::erase_if(entries_, [&](const Entry& entry) {
      return entry.key.path == key.path && entry.key.stamp != key.stamp;
    });
    if (entries_.size() >= limit_) entries_.erase(entries_.begin());
    entries_.push_back({key, promise.get_future().share()});
    return {};
  }

  void forget(const StoreKey& key) {
    const std::lock_guard lock(mutex_);
    std::erase_if(entries_, [&](const Entry& entry) { return entry.key == key; });
  }

  std::size_t limit_;
  std::mutex mutex_;
  std::vector<Entry> entries_; // most recently used last
};

bool is_lost(const Model& model) {
  try {
    model.require_files();
    return false;
  } catch (const Error&) {
    return true;
  }
}

struct ModelStore::State {
  explicit State(ModelSource from) : source(std::move(from)) {}

  // Models whose files could not be read are loaded again when they are next requested.
  void forget_lost() {
    const auto model_is_lost = [](const std::shared_ptr<const Model>& model) { return is_lost(*model); };
    bases.drop(model_is_lost);
    placed_bases.drop(model_is_lost);
    applied.drop([&](const AppliedModel& one) { return is_lost(*one.model); });
  }

  // Those that only the store holds.
  std::set<const Model*> unused() {
    std::map<const Model*, std::pair<long, long>> uses; // by the store, and in all
    const auto count = [&](const std::shared_ptr<const Model>& model) {
      auto& [here, all] = uses[model.get()];
      ++here;
      all = model.use_count();
    };
    bases.each(count);
    placed_bases.each(count);
    applied.each([&](const AppliedModel& one) { count(one.model); });
    std::set<const Model*> found;
    for (const auto& [model, of] : uses)
      if (of.first == of.second) found.insert(model);
    return found;
  }

  const std::vector<AdapterInfo>& bundled() {
    std::call_once(bundled_once, [this] { known_bundled = source.bundled(); });
    return known_bundled;
  }
  // Those and the ones in the model's own folder.
  std::vector<AdapterInfo> known_of(const Model& base) {
    std::vector<AdapterInfo> known = bundled();
    const ModelInfo& info = base.info();
    if (info.capture || info.folder.empty()) return known;
    for (AdapterInfo& adapter : adapter_files(adapters_in(info.folder))) known.push_back(std::move(adapter));
    return known;
  }
  std::vector<AdapterInfo> adapter_files(const std::vector<std::filesystem::path>& files_of) {
    std::vector<AdapterInfo> adapters;
    for (const auto& file : files_of) try {
        adapters.push_back(adapter_file(file));
      } catch (const ForeignFile&) {
        continue; // another program's
      }
    return adapters;
  }
  AdapterInfo adapter_file(const std::filesystem::path& file) {
    return files.get({file.string(), file_stamp(file)}, [&] { return read_adapter_info(file); });
  }
  std::vector<AppliedAdapter> choose(const Model& base, const AdapterChoice& choice, const Schedule& schedule,
                                     AutomaticAdapters automatic);
  // As select_adapters() of the folder's adapters; of the known ones those that they build on, and the
  // model's own tail. Leaves in `known` what may apply.
  std::vector<AdapterInfo> selected_from(const std::filesystem::path& folder, const Model& base,
                                         const Schedule& schedule, std::vector<AdapterInfo>& known);

  ModelSource source;
  std::once_flag bundled_once;
  std::vector<AdapterInfo> known_bundled;
  SharedValues<AdapterInfo> files{kKeptAdapterFiles};
  SharedValues<std::shared_ptr<const std::vector<AdapterInfo>>> available{kKeptLists}; // by model
  SharedValues<std::shared_ptr<const Model>> bases{kKeptBases};
  SharedValues<std::shared_ptr<const Model>> placed_bases{kKeptBases}; // by folder and placement
  SharedValues<AppliedModel> applied{kKeptOverlays};
};

ModelStore::ModelStore(ModelSource source) : state_(std::make_unique<State>(std::move(source))) {}
ModelStore::~ModelStore() = default;

void ModelStore::read_bundled_adapters() { state_->bundled(); }

std::shared_ptr<const Model> ModelStore::base(const std::filesystem::path& folder) {
  if (any_mapping_lost()) state_->forget_lost();
  return state_->bases.get({folder.string(), model_stamp(folder)},
                           [&] { return state_->source.load(folder); });
}

void ModelStore::release_unused(const std::optional<std::string>& device) {
  const std::set<const Model*> unused = state_->unused();
  const auto is_unwanted = [&](const std::shared_ptr<const Model>& model) {
    return unused.contains(model.get()) && (!device || model->device().str() == *device);
  };
  state_->applied.drop([&](const AppliedModel& applied) { return is_unwanted(applied.model); });
  state_->placed_bases.drop(is_unwanted);
  state_->bases.drop(is_unwanted);
}

std::shared_ptr<const std::vector<AdapterInfo>> ModelStore::available(const std::filesystem::path& folder,
                                                                      const Model& base) {
  return state_->available.get({folder.string(), base.info().stamp}, [&] {
    std::set<std::string> bases = {base.hash()};
    // An adapter may be listed before the adapter that it was trained on.
    std::vector<AdapterInfo> fitting;
    for (std::size_t before = 0; before != bases.size();) {
      before = bases.size();
      fitting.clear();
      for (const AdapterInfo& adapter : state_->known_of(base)) {
        const auto is_there = [&](const std::string& hash) { return bases.contains(hash); };
        if (!is_there(adapter.base) || !std::ranges::all_of(adapter.over, is_there)) continue;
        bases.insert(adapter.hash);
        fitting.push_back(adapter);
      }
    }
    return std::make_shared<const std::vector<AdapterInfo>>(std::move(fitting));
  });
}

std::vector<AdapterInfo> ModelStore::State::selected_from(const std::filesystem::path& folder,
                                                          const Model& base, const Schedule& schedule,
                                                          std::vector<AdapterInfo>& known) {
  std::vector<AdapterInfo> own = adapter_files(safetensors_in(folder));
  std::set<std::string> hashes;
  for (const AdapterInfo& adapter : own) hashes.insert(adapter.hash);
  std::erase_if(known, [](const AdapterInfo& adapter) { return adapter.role == "maps"; });
  const auto select = [&] {
    std::vector<AdapterInfo> candidates = own; // first: they precede others for the same schedule
    candidates.insert(candidates.end(), known.begin(), known.end());
    return select_adapters(base.hash(), schedule, candidates);
  };
  std::vector<AdapterInfo> selected = select();
  const auto last = std::find_if(selected.rbegin(), selected.rend(),
                                 [](const AdapterInfo& adapter) { return adapter.role != "maps"; });
  if (last != selected.rend() && last->role == "schedule" && !hashes.contains(last->hash)) {
    keep_tails(known); // a known one is for this schedule, none of the folder
    selected = select();
  }
  known = std::move(own);
  return selected;
}

std::vector<AppliedAdapter> ModelStore::State::choose(const Model& base, const AdapterChoice& choice,
                                                      const Schedule& schedule,
                                                      const AutomaticAdapters automatic) {
  std::vector<AppliedAdapter> chosen;
  if (!choice.automatic) {
    for (const auto& file : choice.files) chosen.push_back({adapter_file(file), {}, true});
    return chosen;
  }
  std::vector<AdapterInfo> known = known_of(base);
  const bool tail_alone = choice.tail_alone || automatic == AutomaticAdapters::tail;
  if (tail_alone) keep_tails(known);
  std::vector<AdapterInfo> selected = choice.folder.empty() || tail_alone
                                          ? select_adapters(base.hash(), schedule, known)
                                          : selected_from(choice.folder, base, schedule, known);
  std::vector<std::string> hashes;
  for (AdapterInfo& adapter : selected) {
    hashes.push_back(adapter.hash);
    chosen.push_back({std::move(adapter), {}, true});
  }
  if (automatic != AutomaticAdapters::all) return chosen;
  // Right after what they were trained on: the maps of an adapter for the schedule follow and take
  // precedence.
  for (const AdapterInfo& adapter : known) {
    if (adapter.role != "maps" || !fits_over(adapter, base.hash(), hashes) ||
        std::ranges::find(hashes, adapter.hash) != hashes.end())
      continue;
    const auto base_adapter = std::ranges::find(
        chosen, adapter.base, [](const AppliedAdapter& earlier) { return earlier.info.hash; });
    chosen.insert(base_adapter == chosen.end() ? chosen.begin() : base_adapter + 1,
                  AppliedAdapter{adapter, {}, false});
  }
  return chosen;
}

AppliedModel ModelStore::apply(const std::filesystem::path& folder, const AdapterChoice& choice,
                               const Schedule& schedule, const Placement& placement,
                               const AutomaticAdapters automatic) {
  return apply(folder, base(folder), choice, schedule, placement, automatic);
}

AppliedModel ModelStore::apply(const std::filesystem::path& folder, const std::shared_ptr<const Model>& base,
                               const AdapterChoice& choice, const Schedule& schedule,
                               const Placement& placement, const AutomaticAdapters automatic) {
  AppliedModel applied;
  StoreKey key{folder.string(), base->info().stamp};
  applied.model = base;
  applied.device = placement.device_name();
  applied.dtype = placement.dtype_name();
  applied.adapters = state_->choose(*applied.model, choice, schedule, automatic);

  key.settings = applied.device + '|' + applied.dtype;
  const StoreKey placed_key = key;
  for (const AppliedAdapter& adapter : applied.adapters)
    key.settings += '|' + adapter.info.hash + (adapter.for_schedule ? "" : "?");
  return state_->applied.get(key, [&] {
    std::vector<std::string> hashes;
    for (AppliedAdapter& adapter : applied.adapters) {
      adapter.parts = parts_of(adapter.info);
      applied.model = apply_adapter(applied.model, adapter.info, hashes);
      hashes.push_back(adapter.info.hash);
    }
    if (placement == Placement{}) return applied;
    const auto placed_base = state_->placed_bases.get(placed_key, [&] { return placed(base, placement); });
    base->require_files(); // of which the placed one may be a copy
    applied.model =
        applied.model == base ? placed_base : placed_over(applied.model, *base, *placed_base, placement);
    return applied;
  });
}

std::shared_ptr<const Model> placed(const std::shared_ptr<const Model>& model, const Placement& placement) {
  if (model->info().capture) return placed_capture(model, placement.device, placement.dtype);
  std::map<std::string, at::Tensor> moved;
  for (const auto& [name, tensor] : model->tensors()) {
    at::Tensor there = placed_tensor(name, tensor, placement);
    if (!there.is_same(tensor)) moved.emplace(name, std::move(there));
  }
  return moved.empty() ? model : model->with_parameters(moved);
}

ModelSource installed_models() { return {load_model, bundled_adapters}; }

std::shared_ptr<ModelStore> make_model_store(ModelSource source) {
  return std::make_shared<ModelStore>(std::move(source));
}

} // namespace hydrascope
