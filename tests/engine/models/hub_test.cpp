// Fetching models, against a hub that the test itself is: no request leaves this machine.
#include "engine/models/hub/hub.h"

#include <fstream>
#include <future>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/models/hub/hub_cache.h"
#include "tests/engine/models/golden.h"
#include "tests/support/checkout.h"
#include "tests/support/hub_server.h"

namespace hydrascope::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const std::string name = "org/name";

class Hub : public testing::Test {
protected:
  Hub() : environment_(hub_environment(server_, home_.path() / "hf")) {
    server_.add_folder(name, source_folder() / "tests" / "golden" / "models" / "deit");
  }

  static HubSettings settings() {
    HubSettings settings = hub_settings();
    settings.retry_pause = std::chrono::milliseconds(1);
    return settings;
  }
  FetchedModel fetch(const FetchObserver& observer = {}) const {
    return fetch_model(name, "main", settings(), observer);
  }
  std::string error_of_fetch(const std::string& repository = name,
                             const std::string& revision = "main") const {
    return message_of<Error>([&] { fetch_model(repository, revision, settings()); });
  }
  fs::path repository() const { return home_.path() / "hf" / "hub" / "models--org--name"; }
  fs::path snapshot() const { return repository() / "snapshots" / HubServer::commit_of(name); }
  std::string weights() const {
    return read_text_file(source_folder() / "tests/golden/models/deit/model.safetensors");
  }
  fs::path blob() const { return repository() / "blobs" / sha256_of(weights()); }
  fs::path incomplete() const { return blob().string() + ".incomplete"; }
  void misbehave(HubFaults faults) { server_.misbehave(std::move(faults)); }

  ScratchFolder home_;
  HubServer server_;
  ScopedEnvironment environment_;
};

TEST_F(Hub, FetchesAModelIntoTheCachesLayout) {
  const FetchedModel model = fetch();
  EXPECT_EQ(model.repository, name);
  EXPECT_EQ(model.commit, HubServer::commit_of(name));
  EXPECT_EQ(model.folder, snapshot());
  EXPECT_EQ(model.info.family, "deit");
  EXPECT_EQ(model.info.name, name);
  std::vector<std::string> names;
  for (const FetchedFile& file : model.files) {
    names.push_back(file.name);
    EXPECT_TRUE(file.downloaded) << file.name;
    EXPECT_EQ(file.size, static_cast<std::int64_t>(fs::file_size(snapshot() / file.name)));
    EXPECT_EQ(file.sha256, file.name == "model.safetensors" ? sha256_of(weights()) : "");
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"config.json", "preprocessor_config.json", "model.safetensors"}));
  EXPECT_EQ(read_text_file(repository() / "refs" / "main"), HubServer::commit_of(name)); // no line's end
  EXPECT_EQ(fs::read_symlink(snapshot() / "model.safetensors"),
            fs::path("../../blobs") / sha256_of(weights()));
  EXPECT_EQ(fs::read_symlink(snapshot() / "config.json"),
            fs::path("../../blobs") / git_hash_of(read_text_file(snapshot() / "config.json")));
  EXPECT_EQ(read_text_file(snapshot() / "model.safetensors"), weights());
  EXPECT_FALSE(fs::exists(incomplete()));
  EXPECT_EQ(resolve_model(name), snapshot());
  EXPECT_EQ(server_.count("GET", "expected"), 0) << "what no model needs is left";
}

TEST_F(Hub, ASecondFetchDownloadsNothing) {
  fetch();
  server_.forget_requests();
  const FetchedModel model = fetch();
  EXPECT_EQ(server_.requests().size(), 1U) << "which commit it is";
  ASSERT_EQ(model.files.size(), 3U);
  for (const FetchedFile& file : model.files) EXPECT_FALSE(file.downloaded) << file.name;
  EXPECT_EQ(model.files.back().sha256, sha256_of(weights()));
}

// The snapshot's links then dangle.
TEST_F(Hub, WhatWasRemovedFromTheCacheIsFetchedAgain) {
  fetch();
  fs::remove(repository() / "blobs" / git_hash_of(read_text_file(snapshot() / "preprocessor_config.json")));
  std::vector<bool> downloaded;
  for (const FetchedFile& file : fetch().files) downloaded.push_back(file.downloaded);
  EXPECT_EQ(downloaded, (std::vector<bool>{false, true, false}));
  fs::remove_all(repository() / "blobs");
  for (const FetchedFile& file : fetch().files) EXPECT_TRUE(file.downloaded) << file.name;
  EXPECT_EQ(read_text_file(snapshot() / "model.safetensors"), weights());
}

TEST_F(Hub, ReportsProgress) {
  FetchProgress last;
  bool checked = false;
  fetch([&](const FetchProgress& progress) {
    EXPECT_GE(progress.bytes, last.bytes);
    EXPECT_LE(progress.bytes, progress.total);
    checked |= progress.checking && progress.file == "model.safetensors";
    last = progress;
  });
  EXPECT_TRUE(checked);
  EXPECT_EQ(last.bytes, last.total);
  EXPECT_EQ(last.received, last.total);
  EXPECT_GT(last.total, static_cast<std::int64_t>(weights().size()));
}

TEST_F(Hub, GoesOnWhereAConnectionWasCut) {
  misbehave({.cuts = 2, .cut_after = 1000});
  fetch();
  EXPECT_EQ(read_text_file(snapshot() / "model.safetensors"), weights());
  std::vector<std::string> ranges;
  for (const HubRequest& request : server_.requests())
    if (request.method == "GET" && request.path.ends_with("model.safetensors"))
      ranges.push_back(request.header("range"));
  EXPECT_EQ(ranges, (std::vector<std::string>{"", "bytes=1000-", "bytes=2000-"}));
}

TEST_F(Hub, GoesOnWithWhatAnEarlierProcessHasLeft) {
  fs::create_directories(incomplete().parent_path());
  std::ofstream(incomplete(), std::ios::binary) << weights().substr(0, 5000);
  const FetchedModel model = fetch();
  EXPECT_EQ(read_text_file(snapshot() / "model.safetensors"), weights());
  EXPECT_EQ(server_.requests().back().header("range"), "bytes=5000-");
  EXPECT_TRUE(model.files.back().downloaded);
}

TEST_F(Hub, AServerThatIgnoresRangesBeginsAnew) {
  fs::create_directories(incomplete().parent_path());
  std::ofstream(incomplete(), std::ios::binary) << std::string(5000, 'x');
  misbehave({.ignores_ranges = true});
  fetch();
  EXPECT_EQ(read_text_file(snapshot() / "model.safetensors"), weights());
}

TEST_F(Hub, GivesUpWhereEveryConnectionIsCut) {
  misbehave({.cuts = 1000, .cut_after = 1000, .ignores_ranges = true});
  EXPECT_THAT(error_of_fetch(), HasSubstr("cut"));
  EXPECT_FALSE(fs::exists(blob()));
  EXPECT_EQ(fs::file_size(incomplete()), 1000U) << "kept for the next time";
}

TEST_F(Hub, WhatArrivesDamagedIsRefusedAndRemoved) {
  misbehave({.damages = true});
  EXPECT_THAT(error_of_fetch(), HasSubstr("SHA-256"));
  EXPECT_FALSE(fs::exists(blob()));
  EXPECT_FALSE(fs::exists(incomplete()));
  EXPECT_FALSE(fs::exists(snapshot() / "model.safetensors"));
  EXPECT_FALSE(fs::exists(repository() / "refs" / "main"));
  misbehave({});
  fetch();
  EXPECT_EQ(read_text_file(snapshot() / "model.safetensors"), weights());
}

TEST_F(Hub, SmallFilesAreCheckedByGitsHash) {
  misbehave({.tag = std::string(40, '0')});
  EXPECT_THAT(error_of_fetch(), HasSubstr("git hash"));
  EXPECT_FALSE(fs::exists(repository() / "blobs" / std::string(40, '0')));
}

TEST_F(Hub, AnotherSizeThanAnnouncedIsRefused) {
  misbehave({.announces_more = 10});
  EXPECT_THAT(error_of_fetch(), HasSubstr("instead of"));
  EXPECT_FALSE(fs::exists(incomplete()));
  misbehave({.announces_more = -10});
  EXPECT_THAT(error_of_fetch(), HasSubstr("longer"));
  EXPECT_FALSE(fs::exists(incomplete()));
  EXPECT_FALSE(fs::exists(blob()));
}

TEST_F(Hub, WaitsForAServerThatIsBusy) {
  misbehave({.busy = 3});
  fetch();
  EXPECT_TRUE(is_complete_model(snapshot()));
  misbehave({.busy = 1000});
  EXPECT_THAT(error_of_fetch(), HasSubstr("503"));
}

TEST_F(Hub, RefusalsSayWhatToDo) {
  EXPECT_THAT(error_of_fetch("org/absent"),
              testing::AllOf(HasSubstr("no such repository"), HasSubstr("HF_TOKEN")));
  const auto refused = [&](int status, const std::string& code) {
    misbehave({.refusals = {{"/api/models/", {status, code}}}});
    return error_of_fetch();
  };
  EXPECT_THAT(refused(401, ""), HasSubstr("HF_TOKEN"));
  EXPECT_THAT(refused(403, "GatedRepo"),
              testing::AllOf(HasSubstr("licence at " + server_.url() + "/org/name"), HasSubstr("HF_TOKEN")));
  EXPECT_THAT(refused(401, "GatedRepo"), HasSubstr("gated"));
  EXPECT_THAT(refused(404, "RevisionNotFound"), HasSubstr("no revision main"));
  EXPECT_THAT(refused(429, ""), HasSubstr("too many requests"));
  EXPECT_THAT(refused(418, ""), HasSubstr("418"));
  EXPECT_FALSE(fs::exists(repository())) << "nothing is written for what is not there";
}

TEST_F(Hub, TheTokenGoesToTheEndpointAlone) {
  HubServer elsewhere;
  elsewhere.add_folder("any/name", source_folder() / "tests/golden/models/deit");
  misbehave({.needs_token = "hf_secret", .elsewhere = elsewhere.url()});
  EXPECT_THAT(error_of_fetch(), HasSubstr("HF_TOKEN")) << "without it";
  const ScopedEnvironment token("HF_TOKEN", "hf_secret\n");
  fetch();
  EXPECT_EQ(read_text_file(snapshot() / "model.safetensors"), weights());
  ASSERT_EQ(elsewhere.requests().size(), 1U);
  EXPECT_EQ(elsewhere.requests()[0].method, "GET");
  EXPECT_EQ(elsewhere.requests()[0].header("authorization"), "");
  for (const HubRequest& request : elsewhere.requests())
    for (const auto& [header, value] : request.headers)
      EXPECT_EQ(value.find("hf_secret"), std::string::npos) << header;
}

TEST_F(Hub, TheTokenIsFoundWhereHuggingFaceKeepsIt) {
  misbehave({.needs_token = "hf_kept"});
  fs::create_directories(home_.path() / "hf");
  home_.write("hf/token", "hf_kept\n");
  fetch();
  home_.write("elsewhere", "hf_other");
  const ScopedEnvironment path("HF_TOKEN_PATH", (home_.path() / "elsewhere").string());
  EXPECT_EQ(hub_settings().token, "hf_other");
  const ScopedEnvironment forged("HF_TOKEN", "a\r\nX-Other: b");
  EXPECT_THROW(hub_settings(), UsageError);
}

TEST_F(Hub, GoesOnElsewhereToo) {
  HubServer elsewhere;
  elsewhere.add_folder("any/name", source_folder() / "tests/golden/models/deit");
  misbehave({.elsewhere = elsewhere.url()});
  fs::create_directories(incomplete().parent_path());
  std::ofstream(incomplete(), std::ios::binary) << weights().substr(0, 5000);
  fetch();
  EXPECT_EQ(elsewhere.requests().back().header("range"), "bytes=5000-");
  EXPECT_EQ(read_text_file(snapshot() / "model.safetensors"), weights());
}

TEST_F(Hub, ARenamedRepositoryIsFoundByItsOldName) {
  server_.rename("old", name);
  fetch_model("old", "main", settings());
  EXPECT_EQ(resolve_model("old"), home_.path() / "hf/hub/models--old/snapshots" / HubServer::commit_of(name));
  EXPECT_EQ(read_text_file(resolve_model("old") / "model.safetensors"), weights());
}

TEST_F(Hub, OfflineAsksNobody) {
  {
    const ScopedEnvironment offline("HF_HUB_OFFLINE", "1");
    const std::string message = error_of_fetch();
    EXPECT_THAT(message, HasSubstr("offline"));
    EXPECT_THAT(message, HasSubstr("HF_HUB_OFFLINE"));
  }
  EXPECT_TRUE(server_.requests().empty());
  fetch();
  server_.forget_requests();
  const ScopedEnvironment offline("TRANSFORMERS_OFFLINE", "yes");
  const FetchedModel model = fetch();
  EXPECT_TRUE(model.offline);
  EXPECT_EQ(model.folder, snapshot());
  EXPECT_EQ(model.files.size(), 3U);
  EXPECT_EQ(fetch_model(name, HubServer::commit_of(name), settings()).folder, snapshot());
  fs::remove(snapshot() / "model.safetensors");
  EXPECT_THAT(error_of_fetch(), HasSubstr("only a part"));
  EXPECT_TRUE(server_.requests().empty());
}

TEST_F(Hub, NobodyThereIsOneLine) {
  std::string url;
  {
    const HubServer gone;
    url = gone.url();
  }
  const ScopedEnvironment endpoint("HF_ENDPOINT", url + "/");
  EXPECT_THAT(error_of_fetch(), HasSubstr(url + ": cannot be reached"));
  const ScopedEnvironment wrong("HF_ENDPOINT", "ftp://somewhere");
  EXPECT_THROW(hub_settings(), UsageError);
}

TEST_F(Hub, TheCacheIsWhereTheEnvironmentSays) {
  EXPECT_EQ(hub_settings().cache, home_.path() / "hf" / "hub");
  const ScopedEnvironment cache("HF_HUB_CACHE", (home_.path() / "own").string());
  EXPECT_EQ(fetch().folder,
            home_.path() / "own" / "models--org--name" / "snapshots" / HubServer::commit_of(name));
  EXPECT_FALSE(fs::exists(home_.path() / "hf"));
}

TEST_F(Hub, CancellingKeepsWhatHasArrived) {
  misbehave({.holds = true});
  std::stop_source stop;
  EXPECT_THROW(fetch_model(
                   name, "main", settings(),
                   [&](const FetchProgress& progress) {
                     if (progress.file == "model.safetensors" && progress.received > 10000)
                       stop.request_stop();
                   },
                   stop.get_token()),
               Cancelled);
  server_.release();
  EXPECT_FALSE(fs::exists(blob()));
  EXPECT_GT(fs::file_size(incomplete()), 5000U);
  EXPECT_FALSE(fs::exists(repository() / "refs" / "main"));
  fetch();
  EXPECT_EQ(read_text_file(snapshot() / "model.safetensors"), weights());
  EXPECT_THAT(server_.requests().back().header("range"), HasSubstr("bytes="));
}

TEST_F(Hub, OfTwoAtOnceOneDownloads) {
  misbehave({.holds = true});
  const HubSettings both = settings();
  const auto fetch_it = [&both] { return fetch_model(name, "main", both); };
  auto first = std::async(std::launch::async, fetch_it);
  while (server_.count("GET", "model.safetensors") == 0) std::this_thread::yield();
  auto second = std::async(std::launch::async, fetch_it);
  while (server_.count("HEAD", "model.safetensors") < 2)
    std::this_thread::yield(); // it will soon want the same
  server_.release();
  EXPECT_TRUE(first.get().files.back().downloaded);
  EXPECT_FALSE(second.get().files.back().downloaded);
  EXPECT_EQ(server_.count("GET", "model.safetensors"), 1);
  EXPECT_EQ(read_text_file(snapshot() / "model.safetensors"), weights());
}

TEST_F(Hub, NamesThatLeadElsewhereAreRefused) {
  for (const char* bad : {"", "a/b/c", "../name", "org/..", "org/na me", "org/", "/name", ".hidden", "a--b"})
    EXPECT_THROW(fetch_model(bad, "main", settings()), UsageError) << bad;
  for (const char* bad : {"", "../x", "/x", "a//b", "a b"})
    EXPECT_THROW(fetch_model(name, bad, settings()), UsageError) << bad;
  EXPECT_TRUE(server_.requests().empty());
  for (const char* bad : {"../../../evil", "/tmp/evil", "", "sub/evil.safetensors"}) {
    const std::string index = std::string(R"({"weight_map": {"x": ")") + bad + "\"}}";
    server_.add(name,
                {{"config.json", read_text_file(source_folder() / "tests/golden/models/deit/config.json")},
                 {"model.safetensors.index.json", index}});
    EXPECT_THAT(error_of_fetch(), HasSubstr("not a file name")) << bad;
    fs::remove_all(repository());
  }
  for (const char* bad : {"../../evil", "..", "a/b", ""}) {
    misbehave({.commit = bad[0] == '\0' ? " " : bad});
    EXPECT_THAT(error_of_fetch(), HasSubstr("not a model's listing"));
  }
  for (const char* bad : {"../../evil", "..", ".hidden"}) {
    misbehave({.tag = bad});
    EXPECT_THAT(error_of_fetch(), HasSubstr("ETag"));
  }
  EXPECT_FALSE(fs::exists(home_.path() / "hf" / "hub" / "evil"));
}

TEST_F(Hub, ShardsAreFetchedByTheirIndex) {
  const fs::path golden = source_folder() / "tests/golden/models/deit";
  server_.add(name, {{"config.json", read_text_file(golden / "config.json")},
                     {"model.safetensors.index.json",
                      R"({"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}})"},
                     {"model-1.safetensors", weights()},
                     {"model-2.safetensors", weights() + " "},
                     {"model-3.safetensors", "of nobody"}});
  EXPECT_EQ(fetch().files.size(), 4U);
  EXPECT_TRUE(is_complete_model(snapshot()));
  EXPECT_FALSE(fs::exists(snapshot() / "model-3.safetensors"));
  fs::remove(snapshot() / "model-2.safetensors");
  EXPECT_FALSE(is_complete_model(snapshot()));
}

TEST_F(Hub, ShardsInAnotherFolderAreNone) {
  const fs::path outer = home_.path() / "local", folder = outer / "model";
  fs::create_directories(folder);
  std::ofstream(folder / "config.json") << "{}";
  std::ofstream(outer / "other.safetensors") << weights();
  std::ofstream(folder / "own.safetensors") << weights();
  for (const auto& [shard, complete] : {std::pair{"own.safetensors", true},
                                        {"../other.safetensors", false},
                                        {"../model/own.safetensors", false}}) {
    std::ofstream(folder / "model.safetensors.index.json")
        << fmt::format(R"({{"weight_map": {{"a": "{}"}}}})", shard);
    EXPECT_EQ(is_complete_model(folder), complete) << shard;
  }
}

TEST_F(Hub, WhatCannotBeRunIsSaidBeforeItsWeightsAreFetched) {
  server_.add(name, {{"config.json", R"({"model_type": "t5"})"}, {"model.safetensors", weights()}});
  EXPECT_THAT(error_of_fetch(), testing::AllOf(HasSubstr("t5"), HasSubstr("BERT")));
  EXPECT_EQ(server_.count("GET", "model.safetensors"), 0);
  EXPECT_TRUE(fs::exists(snapshot() / "config.json")) << "what was fetched stays";
  server_.add(name, {{"config.json", "{}"}, {"pytorch_model.bin", "x"}});
  EXPECT_THAT(error_of_fetch(), testing::AllOf(HasSubstr("pytorch_model.bin"), HasSubstr("save_pretrained")));
  server_.add(name, {{"README.md", "x"}});
  EXPECT_THAT(error_of_fetch(), HasSubstr("config.json"));
}

TEST_F(Hub, TextModelsBringTheirVocabulary) {
  server_.add_folder(name, source_folder() / "tests/golden/models/bert");
  const FetchedModel model = fetch();
  EXPECT_EQ(model.info.input, InputKind::text);
  EXPECT_TRUE(fs::exists(snapshot() / "vocab.txt"));
  EXPECT_TRUE(fs::exists(snapshot() / "tokenizer_config.json"));
}

TEST_F(Hub, ABertMayHaveBytePairs) {
  const fs::path golden = source_folder() / "tests/golden";
  auto tokenizer = nlohmann::json::parse(read_text_file(golden / "byte_pair/llama3/tokenizer.json"));
  const auto add = [&] {
    server_.add(name, {{"config.json", read_text_file(golden / "models/bert/config.json")},
                       {"tokenizer.json", tokenizer.dump()},
                       {"added_tokens.json", "{}"},
                       {"model.safetensors", read_text_file(golden / "models/bert/model.safetensors")}});
  };
  add();
  EXPECT_THAT(error_of_fetch(), HasSubstr("both ends")) << "it adds a token before a text alone";
  EXPECT_EQ(server_.count("GET", "model.safetensors"), 0);
  auto& around = tokenizer.at("post_processor").at("processors").at(1).at("single");
  around.push_back(around.at(0));
  fs::remove_all(repository());
  add();
  EXPECT_EQ(fetch().info.family, "bert");
  EXPECT_TRUE(is_complete_model(snapshot()));
  EXPECT_TRUE(fs::exists(snapshot() / "added_tokens.json")) << "which vocab.json and merges.txt need";
}

TEST_F(Hub, AModelThatIsNotThereNamesTheCommand) {
  EXPECT_THAT(message_of<Error>([] { resolve_model("org/absent"); }),
              HasSubstr("hydrascope fetch org/absent"));
  fetch();
  fs::remove(snapshot() / "model.safetensors");
  EXPECT_EQ(resolve_model(name), snapshot()) << "config.json alone tells a lot";
}

} // namespace
} // namespace hydrascope::test
