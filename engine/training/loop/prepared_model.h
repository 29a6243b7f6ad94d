// The model a training starts from: the base weights with the adapters it builds on.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/models/transformer/model.h"
#include "engine/run/model_source.h"
#include "engine/run/run.h"
#include "engine/training/loop/optimizer.h"

namespace hydrascope::training {

struct PreparedModel {
  std::shared_ptr<const Model> model;
  std::vector<AdapterInfo> adapters; // applied, in order
  std::string model_hash;            // of the base weights
  std::string base;                  // hash of the last adapter, or of the model's weights if there is none
  Schedule schedule;
  std::vector<AdapterInfo::Class>
      classes; // of the classifier; empty without one; ids only where an adapter has them
};

// Automatic adapters: the model's own tail alone for training (what was trained through a schedule before is
// not a base to train from), everything that fits the schedule otherwise. Throws Error and its kinds;
// UsageError for a device other than the CPU.
PreparedModel prepare_model(ModelStore& models, const std::filesystem::path& folder,
                            const AdapterChoice& adapters, const ScheduleChoice& schedule,
                            const ExecutionOptions& execution, bool for_training);

// What an adapter of this role that stores these parameters builds on: prepared.base, or what came before
// those of its last adapters that have this role, too, and of which it replaces every tensor.
std::string base_without_replaced(const PreparedModel& prepared, const std::string& role,
                                  const NamedTensors& stored);

// The name of a kernel's parameter among a model's: kernel.LAYER.KERNEL.NAME.
std::string kernel_parameter_name(int layer, const Kernel& kernel, const std::string& name);

// Prepares a picture file at a size; pictures of one size share a layout.
ModelInput prepare_picture(const Model& model, const Image& image, int image_size);

} // namespace hydrascope::training
