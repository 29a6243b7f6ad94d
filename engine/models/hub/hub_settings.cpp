// What the environment says of the hub.
#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/base/process.h"
#include "engine/models/hub/hub.h"
#include "engine/models/hub/hub_cache.h"

namespace hydrascope {
namespace {

namespace fs = std::filesystem;

bool is_switched_on(const char* name) {
  std::string value = environment(name);
  std::ranges::transform(value, value.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return value == "1" || value == "ON" || value == "YES" || value == "TRUE";
}

std::string token_of_environment() {
  if (is_switched_on("HF_HUB_DISABLE_IMPLICIT_TOKEN")) return {};
  std::string token = environment("HF_TOKEN");
  if (token.empty()) token = environment("HUGGING_FACE_HUB_TOKEN");
  if (token.empty()) {
    const std::string named = environment("HF_TOKEN_PATH");
    const fs::path file = named.empty() ? hub_home_folder() / "token" : fs::path(named);
    std::error_code error;
    if (fs::is_regular_file(file, error)) token = read_text_file(file);
  }
  token.erase(token.find_last_not_of(" \t\r\n") + 1);
  token.erase(0, token.find_first_not_of(" \t\r\n"));
  // What is not printable could end the header and begin another.
  if (!std::ranges::all_of(token, [](unsigned char c) { return c > ' ' && c < 127; }))
    throw UsageError("HF_TOKEN", "holds characters that no token has", "set it to the token alone");
  return token;
}

} // namespace

HubSettings hub_settings() {
  HubSettings settings;
  if (std::string endpoint = environment("HF_ENDPOINT"); !endpoint.empty()) {
    while (endpoint.ends_with('/')) endpoint.pop_back();
    if (!endpoint.starts_with("https://") && !endpoint.starts_with("http://"))
      throw UsageError("HF_ENDPOINT", endpoint + " is neither https:// nor http://", "set it to https://…");
    settings.endpoint = endpoint;
  }
  settings.cache = hub_cache_folder();
  settings.offline = is_switched_on("HF_HUB_OFFLINE") || is_switched_on("TRANSFORMERS_OFFLINE");
  if (!settings.offline) settings.token = token_of_environment();
  for (const char* name : {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"})
    if (settings.certificates.empty()) settings.certificates = environment(name);
  return settings;
}

} // namespace hydrascope
