// `hydrascope fetch` as a user runs it, against a hub on the loopback.
#include <nlohmann/json.hpp>

#include "tests/commands/program.h"
#include "tests/support/free_port.h"
#include "tests/support/hub_server.h"

namespace {

using namespace hydrascope::test;
using nlohmann::json;

class FetchCommand : public ProgramTest {
protected:
  FetchCommand() : environment_(hub_environment(server_, folder_ / "hf")) {
    server_.add_folder("org/tiny", source_folder() / "tests/golden/models/deit");
    server_.add_folder("org/tiny-text", source_folder() / "tests/golden/models/bert");
  }

  fs::path snapshot(const std::string& repository, const std::string& folder) const {
    return folder_ / "hf" / "hub" / folder / "snapshots" / HubServer::commit_of(repository);
  }

  HubServer server_;
  ScopedEnvironment environment_; // the program inherits it
};

TEST_F(FetchCommand, WhatItFetchesRunsByItsName) {
  expect_error("run --model org/tiny --image " + picture, 1, "hydrascope fetch org/tiny");
  const Outcome fetched = hydrascope("fetch org/tiny");
  ASSERT_EQ(fetched.status, 0) << fetched.errors;
  EXPECT_EQ(fetched.output, snapshot("org/tiny", "models--org--tiny").string() + "\n");
  EXPECT_NE(fetched.errors.find("3 of 3 files downloaded"), std::string::npos) << fetched.errors;
  const Outcome run = hydrascope("run --model org/tiny --json --image " + picture);
  ASSERT_EQ(run.status, 0) << run.errors;
  const json result = json::parse(run.output);
  ASSERT_EQ(result["layers"].size(), 2U);
  for (const json& layer : result["layers"]) EXPECT_EQ(layer["kernel"], "softmax");
}

TEST_F(FetchCommand, TextModelsRunByTheirNames) {
  ASSERT_EQ(hydrascope("fetch org/tiny-text").status, 0);
  const Outcome run = hydrascope("run --model org/tiny-text --json --text cat");
  ASSERT_EQ(run.status, 0) << run.errors;
  EXPECT_EQ(json::parse(run.output)["tokens"], json({"[CLS]", "cat", "[SEP]"}));
}

TEST_F(FetchCommand, JsonSaysWhereEachFileCameFrom) {
  const auto fetch = [&] {
    const Outcome outcome = hydrascope("fetch org/tiny --revision main --json");
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    return json::parse(outcome.output);
  };
  const json first = fetch(), second = fetch();
  EXPECT_EQ(first["repository"], "org/tiny");
  EXPECT_EQ(first["revision"], "main");
  EXPECT_EQ(first["commit"], HubServer::commit_of("org/tiny"));
  EXPECT_EQ(first["folder"], snapshot("org/tiny", "models--org--tiny").string());
  ASSERT_EQ(first["files"].size(), 3U);
  for (const json& file : first["files"]) {
    EXPECT_EQ(file["state"], "downloaded");
    EXPECT_EQ(file["size"], fs::file_size(fs::path(first["folder"]) / file["name"]));
    EXPECT_EQ(file.contains("sha256"), file["name"] == "model.safetensors");
  }
  ASSERT_EQ(second["files"].size(), 3U);
  for (const json& file : second["files"]) EXPECT_EQ(file["state"], "cached");
  EXPECT_EQ(second["files"][2]["sha256"],
            sha256_of(bytes_of(fs::path(first["folder"]) / "model.safetensors")));
}

TEST_F(FetchCommand, OfflineTellsWhatTheCacheHas) {
  ASSERT_EQ(hydrascope("fetch org/tiny").status, 0);
  server_.forget_requests();
  const ScopedEnvironment offline("HF_HUB_OFFLINE", "1");
  const Outcome there = hydrascope("fetch org/tiny");
  EXPECT_EQ(there.status, 0) << there.errors;
  EXPECT_EQ(there.output, snapshot("org/tiny", "models--org--tiny").string() + "\n");
  EXPECT_NE(there.errors.find("offline"), std::string::npos);
  expect_error("fetch org/tiny-text", 1, "HF_HUB_OFFLINE");
  EXPECT_TRUE(server_.requests().empty());
}

// There is no host hub.invalid (RFC 6761): its model can arrive through the proxy alone.
TEST_F(FetchCommand, AProxyFetchesWhatCannotBeReachedDirectly) {
  const ScopedEnvironment hub("HF_ENDPOINT", "http://hub.invalid");
  {
    const ScopedEnvironment absent("http_proxy", "http://127.0.0.1:" + std::to_string(free_port()));
    expect_error("fetch org/tiny", 1, "http://hub.invalid: cannot be reached");
  }
  EXPECT_TRUE(server_.requests().empty());

  const ScopedEnvironment proxy("http_proxy", server_.url());
  const Outcome fetched = hydrascope("fetch org/tiny");
  ASSERT_EQ(fetched.status, 0) << fetched.errors;
  EXPECT_EQ(fetched.output, snapshot("org/tiny", "models--org--tiny").string() + "\n");
  EXPECT_NE(fetched.errors.find("3 of 3 files downloaded"), std::string::npos) << fetched.errors;
  EXPECT_EQ(server_.count("GET", "/model.safetensors"), 1);
  for (const HubRequest& request : server_.requests())
    EXPECT_EQ(request.origin, "http://hub.invalid") << request.method << " " << request.path;
}

// The server speaks no TLS, so the tunnel it grants ends there; but it shows who is asked, and for which
// host.
TEST_F(FetchCommand, AnEncryptedHubIsReachedThroughATunnelOfTheProxy) {
  const ScopedEnvironment hub("HF_ENDPOINT", "https://hub.invalid");
  const ScopedEnvironment proxy("https_proxy", server_.url());
  expect_error("fetch org/tiny", 1, "https://hub.invalid: no trusted connection");
  const std::vector<HubRequest> requests = server_.requests();
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_EQ(requests[0].method, "CONNECT");
  EXPECT_EQ(requests[0].path, "hub.invalid:443");

  const ScopedEnvironment other("HF_ENDPOINT", "https://refused.invalid");
  expect_error("fetch org/tiny", 1, "the proxy refuses the connection (status 407)");
  EXPECT_EQ(server_.requests().size(), 2U) << "it is asked once";
}

TEST_F(FetchCommand, BadRequestsAreOneLineWithTheirStatus) {
  expect_error("fetch", 2, "REPOSITORY");
  expect_error("fetch not/a/name", 2, "organisation/name");
  expect_error("fetch org/tiny --revision ../x", 2, "--revision");
  expect_error("fetch org/absent", 1, "HF_TOKEN");
  server_.misbehave({.damages = true});
  expect_error("fetch org/tiny", 1, "SHA-256");
  expect_error("run --image " + picture + " --model org/tiny", 1, "hydrascope fetch org/tiny");
}

} // namespace
