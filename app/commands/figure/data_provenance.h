// Where figures of many files come from. Plain header.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/commands/figure/kinds.h"
#include "engine/models/model_info.h"

namespace hydrascope::app {

// A run's provenance with `inputs` [{name, hash}] in place of the one input.
std::string with_files(const std::string& provenance, const std::vector<std::filesystem::path>& files);

// {program, version, command, model {name, hash}, adapters, inputs, device, dtype, seed}, as
// provenance_json's. A folder stands for the pictures in it. `model` empty: none took part.
std::string data_provenance(const FigureTask& task, const std::filesystem::path& model,
                            const std::string& model_hash, const std::vector<AdapterInfo>& adapters,
                            const std::vector<std::filesystem::path>& data);

} // namespace hydrascope::app
