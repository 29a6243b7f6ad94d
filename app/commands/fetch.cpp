// hydrascope fetch: a model from the Hugging Face Hub into the Hugging Face cache.
#include <cstdio>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/commands/commands.h"
#include "app/commands/output.h"
#include "engine/base/json_text.h"
#include "engine/models/hub/hub.h"

namespace hydrascope::app {
namespace {

constexpr double megabyte = 1e6;

struct FetchOptions {
  std::string repository;
  std::string revision = "main";
  bool json = false;
};

nlohmann::ordered_json to_json(const FetchedModel& model) {
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  for (const FetchedFile& file : model.files) {
    files.push_back({{"name", file.name}, {"size", file.size}});
    if (!file.sha256.empty()) files.back()["sha256"] = file.sha256;
    files.back()["state"] = file.downloaded ? "downloaded" : "cached";
  }
  return {{"repository", model.repository},
          {"revision", model.revision},
          {"commit", model.commit},
          {"folder", model.folder.string()},
          {"files", files}};
}

void print(const FetchedModel& model) {
  double megabytes = 0;
  std::size_t downloaded = 0;
  for (const FetchedFile& file : model.files) {
    if (!file.downloaded) continue;
    ++downloaded;
    megabytes += static_cast<double>(file.size) / megabyte;
  }
  if (downloaded == 0) {
    fmt::print(stderr, "{} is in the cache{}\n", model.repository,
               model.offline ? "; offline, so no newer one was looked for" : " already");
  } else {
    fmt::print(stderr, "{}: {} of {} files downloaded, {:.1f} MB\n", model.repository, downloaded,
               model.files.size(), megabytes);
  }
  fmt::print("{}\n", model.folder.string());
}

void run(const FetchOptions& options) {
  FetchedModel model;
  {
    ProgressBar bar(options.repository + ", MB");
    const auto observe = [&](const FetchProgress& progress) {
      constexpr auto whole = static_cast<std::int64_t>(megabyte);
      bar.show(progress.bytes / whole, (progress.total + whole - 1) / whole);
    };
    model = fetch_model(options.repository, options.revision, hub_settings(), observe);
  }
  if (options.json) {
    fmt::print("{}\n", text_of_json(to_json(model), 2));
  } else {
    print(model);
  }
}

} // namespace

void add_fetch_command(CLI::App& program) {
  CLI::App* const command = program.add_subcommand(
      "fetch", "download a model from the Hugging Face Hub into the Hugging Face cache");
  command->footer(
      "Afterwards --model REPOSITORY finds it. A download that was interrupted goes on where it ended. Read "
      "from "
      "the environment, as huggingface_hub does: HF_HOME, HF_HUB_CACHE, HF_ENDPOINT, HF_TOKEN, "
      "HF_TOKEN_PATH, "
      "HF_HUB_OFFLINE.");
  const auto options = std::make_shared<FetchOptions>();
  command->add_option("REPOSITORY", options->repository, "as in facebook/deit-base-patch16-224")->required();
  command->add_option("--revision", options->revision, "branch, tag or commit")->capture_default_str();
  command->add_flag("--json", options->json, "one JSON document on standard output");
  command->callback([options] { run(*options); });
}

} // namespace hydrascope::app
