// The model that a training starts from: the base weights with the adapters that it builds on.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/models/transformer/model.h"
#include "engine/run/model_store.h"
#include "engine/run/placement.h"
#include "engine/run/run.h"
#include "engine/training/loop/optimizer.h"
#include "engine/training/loop/training_files.h"

namespace hydrascope::training {

struct PreparedModel {
  std::shared_ptr<const Model> model;
  std::vector<AppliedAdapter> adapters; // in order
  std::string model_hash;               // of the base weights
  Schedule schedule;
  std::vector<AdapterInfo::Class> classes; // of the classifier; empty without one; ids only from adapters
  int image_size = 0;                      // that its adapters were trained at, else the model's own
};

// Automatic adapters are the model's own tail for training (not what was trained through a schedule), and
// otherwise all that fit the schedule. Throws Error and its kinds.
PreparedModel prepare_model(ModelStore& models, const std::filesystem::path& folder,
                            const AdapterChoice& adapters, const ScheduleChoice& schedule,
                            const Placement& placement, bool for_training);

// The placement of models that are trained: float32 on the request's device; matrix products may be in
// another type (autocast.h). Throws as placement_of.
Placement training_placement(const ExecutionOptions& execution);

// What an adapter with this role and these parameters builds on: the prepared adapters without trained maps,
// on which nothing builds, and without those of the same role all of whose tensors it replaces; the model's
// weights if none is left. Those that a remaining one was trained over remain.
AdapterBase base_of(const PreparedModel& prepared, const std::string& role, const NamedTensors& stored = {});

// The first digits of the hashes of what a training starts from: of all its adapters, in order, or of the
// model's weights if there is none. The first adapter names the model that it fits, so that the weights are
// in it, too.
std::string hashes_text(const PreparedModel& prepared);

// The maps of the schedule's kernels that adapters of the role maps have brought, by kernel_parameter_name():
// no adapter builds on these, so one that was trained over them holds them itself.
NamedTensors given_maps(const PreparedModel& prepared);

// kernel.LAYER.KERNEL.NAME, the name of a kernel's parameter among a model's. KERNEL is the kernel's name or,
// of `phi`, as it is written with the source that the parameters belong to.
std::string kernel_parameter_name(int layer, const Kernel& kernel, const std::string& name);

// A picture prepared for the model at this size, 0: the model's own.
ModelInput prepare_picture(const Model& model, const Image& image, int image_size);

} // namespace hydrascope::training
