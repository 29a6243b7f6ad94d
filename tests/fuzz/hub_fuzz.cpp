// Answers of a hub while a model is fetched. In place of libcurl's transfers stand those of the input:
// answers divided by lines "====", each a status (or -CODE, a failed transfer), lines of headers, an empty
// line and a body.
#include <algorithm>
#include <cstdarg>
#include <utility>

#include <curl/curl.h>

#include "engine/base/text.h"
#include "engine/models/hub/hub.h"
#include "tests/fuzz/fuzz.h"

#pragma clang diagnostic ignored "-Wvarargs" // an enumeration of libcurl's, which it passes in the same way
#undef curl_easy_setopt
#undef curl_easy_getinfo

using namespace hydrascope;

namespace {

using Receive = std::size_t (*)(char*, std::size_t, std::size_t, void*);

std::string_view answers; // those that are left

struct Handle {
  Receive header = nullptr, body = nullptr;
  void *header_user = nullptr, *body_user = nullptr;
  std::string url, redirect;
  bool no_body = false;
  long status = 0;
};
Handle handle; // fetching is done by one at a time

std::string redirect_of(const std::string& location) {
  std::string target;
  CURLU* const url = curl_url();
  char* whole = nullptr;
  if (curl_url_set(url, CURLUPART_URL, handle.url.c_str(), 0) == CURLUE_OK &&
      curl_url_set(url, CURLUPART_URL, location.c_str(), 0) == CURLUE_OK &&
      curl_url_get(url, CURLUPART_URL, &whole, 0) == CURLUE_OK)
    target = whole;
  curl_free(whole);
  curl_url_cleanup(url);
  return target;
}

void take_header(std::string line) {
  const std::size_t colon = std::min(line.find(':'), line.size());
  const std::string name = lower_case(line.substr(0, colon)),
                    value(trimmed(std::string_view(line).substr(std::min(colon + 1, line.size()))));
  if (name == "location") handle.redirect = redirect_of(value);
  if (name == "retry-after") {
    const long seconds = std::strtol(value.c_str(), nullptr, 10);
    if (seconds > 0 && seconds <= 60) return; // it would be waited for
  }
  line += "\r\n";
  handle.header(line.data(), 1, line.size(), handle.header_user);
}

} // namespace

extern "C" {

CURL* curl_easy_init() { return &handle; }
void curl_easy_reset(CURL*) { handle = {}; }
void curl_easy_cleanup(CURL*) {}

// NOLINTNEXTLINE(cert-dcl50-cpp): libcurl's own form
CURLcode curl_easy_setopt(CURL*, CURLoption option, ...) {
  va_list list;
  va_start(list, option);
  if (option == CURLOPT_URL) handle.url = va_arg(list, const char*);
  if (option == CURLOPT_NOBODY) handle.no_body = va_arg(list, long) != 0;
  if (option == CURLOPT_HEADERFUNCTION) handle.header = va_arg(list, Receive);
  if (option == CURLOPT_HEADERDATA) handle.header_user = va_arg(list, void*);
  if (option == CURLOPT_WRITEFUNCTION) handle.body = va_arg(list, Receive);
  if (option == CURLOPT_WRITEDATA) handle.body_user = va_arg(list, void*);
  va_end(list);
  return CURLE_OK;
}

CURLcode curl_easy_getinfo(CURL*, CURLINFO info, ...) {
  va_list list;
  va_start(list, info);
  if (info == CURLINFO_RESPONSE_CODE) *va_arg(list, long*) = handle.status;
  if (info == CURLINFO_REDIRECT_URL)
    *va_arg(list, const char**) = handle.redirect.empty() ? nullptr : handle.redirect.c_str();
  va_end(list);
  return CURLE_OK;
}

CURLcode curl_easy_perform(CURL*) {
  if (answers.empty()) return CURLE_COULDNT_CONNECT;
  std::string_view answer = fuzz::next(answers);
  const std::string status(fuzz::next(answer, "\n"));
  const long number = std::strtol(status.c_str(), nullptr, 10);
  if (number < 0 && number > -CURL_LAST) return static_cast<CURLcode>(-number);
  handle.status = std::clamp(number, 100L, 599L);
  for (std::string_view line = fuzz::next(answer, "\n"); !line.empty(); line = fuzz::next(answer, "\n"))
    take_header(std::string(line));
  if (handle.no_body) return CURLE_OK;
  std::string body(answer);
  const std::size_t half = body.size() / 2;
  for (const auto& [from, count] : {std::pair{std::size_t{0}, half}, std::pair{half, body.size() - half}})
    if (count > 0 && handle.body(body.data() + from, 1, count, handle.body_user) != count)
      return CURLE_WRITE_ERROR;
  return CURLE_OK;
}
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, const std::size_t size) {
  answers = fuzz::text_of(data, size);
  HubSettings settings;
  settings.endpoint = "https://hub.example";
  settings.cache = fuzz::folder() / "hub";
  settings.retry_pause = std::chrono::milliseconds(0);
  std::filesystem::remove_all(settings.cache);
  return fuzz::accepts_or_refuses([&] { fetch_model("org/name", "main", settings); });
}
