#include "engine/models/hub/hub_http.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <exception>
#include <utility>

#include <curl/curl.h>
#include <fmt/format.h>

#include "engine/base/process.h"
#include "engine/base/text.h"

namespace hydrascope {
namespace {

constexpr int max_attempts = 5;
constexpr int max_redirects = 10;
constexpr long connect_seconds = 15;
constexpr long silent_seconds = 30;
constexpr std::size_t max_body = std::size_t{32} << 20;
constexpr std::size_t max_rejected_body = std::size_t{64} << 10;

struct FreeUrl {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};

struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using HeaderList = std::unique_ptr<curl_slist, FreeList>;

void append(HeaderList& list, const std::string& line) {
  curl_slist* const longer = curl_slist_append(list.get(), line.c_str());
  if (longer == nullptr) throw std::bad_alloc();
  if (!list) list.reset(longer); // otherwise it is the same list
}

std::string part_of(CURLU* url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, CURLU_DEFAULT_PORT) != CURLUE_OK) return {};
  std::string copy(text);
  curl_free(text);
  return copy;
}

// Scheme, host and port, which a token belongs to; empty for an invalid URL.
std::string origin_of(const std::string& url) {
  const std::unique_ptr<CURLU, FreeUrl> parsed(curl_url());
  if (!parsed || curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK) return {};
  const std::string host = lower_case(part_of(parsed.get(), CURLUPART_HOST));
  return part_of(parsed.get(), CURLUPART_SCHEME) + "://" + host + ":" + part_of(parsed.get(), CURLUPART_PORT);
}

// The origin as written in the URL.
std::string shown_origin(const std::string& url) {
  const std::size_t host = url.find("://");
  return url.substr(0, host == std::string::npos ? host : url.find('/', host + 3));
}

bool is_redirect(long status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

enum class Method { get, head };

// One request, for libcurl's callbacks.
struct Transfer {
  CURL* handle = nullptr;
  const std::stop_token* stop = nullptr;
  const BodySink* sink = nullptr; // null: the body is kept
  HttpReply reply;
  bool started = false, accepted = false;
  std::exception_ptr problem;

  void begin() {
    if (started) return;
    started = true;
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &reply.status);
    accepted = sink != nullptr && !is_redirect(reply.status) && sink->begin(reply);
  }
  void receive(std::string_view bytes) {
    begin();
    if (accepted) return sink->receive(bytes);
    if (sink != nullptr || is_redirect(reply.status)) {
      bytes = bytes.substr(0, max_rejected_body - std::min(max_rejected_body, reply.body.size()));
    } else if (reply.body.size() + bytes.size() > max_body) {
      throw Error("hub", "its answer is longer than 32 MB", "check HF_ENDPOINT");
    }
    reply.body.append(bytes);
  }
};

// Exceptions must not pass through libcurl.
std::size_t receive_body(char* bytes, std::size_t, std::size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  try {
    transfer.receive({bytes, count});
    return count;
  } catch (...) {
    transfer.problem = std::current_exception();
    return CURL_WRITEFUNC_ERROR;
  }
}

std::size_t receive_header(char* bytes, std::size_t, std::size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const std::string_view line(bytes, count);
  if (line.starts_with("HTTP/")) transfer.reply.headers.clear(); // another reply after "100 Continue"
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return count;
  const std::string name = lower_case(line.substr(0, colon));
  transfer.reply.headers[name] = std::string(trimmed(line.substr(colon + 1), " \t\r\n"));
  return count;
}

int watch(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Transfer*>(user)->stop->stop_requested() ? 1 : 0;
}

[[noreturn]] void fail(CURL* handle, CURLcode code, const std::string& origin, const char* details) {
  // The status of a proxy's answer to CONNECT: libcurl's code does not tell it from a cut transfer.
  long of_proxy = 0;
  curl_easy_getinfo(handle, CURLINFO_HTTP_CONNECTCODE, &of_proxy);
  if (of_proxy >= 300) {
    const bool transient = of_proxy == 429 || of_proxy >= 500;
    throw TransferFailure(
        origin, fmt::format("the proxy refuses the connection (status {})", of_proxy),
        transient ? "try again later" : "check https_proxy, with name and password where it asks for them",
        transient);
  }
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
      throw TransferFailure(origin, "its host name cannot be resolved",
                            "check the network, HF_ENDPOINT and the proxy, or work with what the cache has",
                            false);
    case CURLE_COULDNT_CONNECT:
      throw TransferFailure(origin, "cannot be reached",
                            "check the network, HF_ENDPOINT and the proxy, or work with what the cache has",
                            false);
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CONNECT_ERROR:
      throw TransferFailure(origin, fmt::format("no trusted connection ({})", details),
                            "check the clock and the certificates (SSL_CERT_FILE)", false);
    case CURLE_OPERATION_TIMEDOUT:
      throw TransferFailure(origin, "does not answer in time", "try again later", true);
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
      throw TransferFailure(origin, "the connection was cut", "try again: what has arrived is kept", true);
    default: throw TransferFailure(origin, details, "check HF_ENDPOINT and the network", false);
  }
}

void start_curl() {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT); // once per process
  if (started != CURLE_OK) throw Error("libcurl", curl_easy_strerror(started), "check its installation");
}

} // namespace

class HttpSession::Implementation {
public:
  explicit Implementation(const HubSettings& settings) : settings_(settings) {
    start_curl();
    handle_.reset(curl_easy_init());
    origin_ = origin_of(settings.endpoint);
    if (!handle_) throw Error("libcurl", "cannot be started", "check its installation");
    if (origin_.empty())
      throw UsageError("HF_ENDPOINT", settings.endpoint + " is not a URL",
                       "set it to https://…, or unset it");
  }

  HttpReply request(Method method, std::string url, std::int64_t from, const BodySink* sink,
                    const std::stop_token& stop) {
    std::map<std::string, std::string> kept;
    for (int i = 0; i <= max_redirects; ++i) {
      HttpReply reply = one_request(method, url, from, sink, stop);
      for (const auto& [name, value] : kept) reply.headers.emplace(name, value);
      const char* next = nullptr;
      curl_easy_getinfo(handle_.get(), CURLINFO_REDIRECT_URL, &next);
      if (!is_redirect(reply.status) || next == nullptr) return reply;
      const std::string target(next);
      if (method == Method::head && origin_of(target) != origin_) return reply;
      if (url.starts_with("https:") && !target.starts_with("https:"))
        throw Error(shown_origin(url), "redirects to an unencrypted address", "check HF_ENDPOINT");
      for (const auto& [name, value] : reply.headers)
        if (name.starts_with("x-")) kept[name] = value;
      url = target;
    }
    throw Error(shown_origin(url), "redirects too often", "check HF_ENDPOINT");
  }

  HttpReply with_retries(Method method, const std::string& url, const std::stop_token& stop) {
    for (RetryBackoff backoff(settings_.retry_pause);;) {
      try {
        HttpReply reply = request(method, url, 0, nullptr, stop);
        if (!reply.is_retryable() || !backoff.wait(&reply, stop)) return reply;
      } catch (const TransferFailure& failure) {
        if (!failure.transient() || !backoff.wait(nullptr, stop)) throw;
      }
    }
  }

private:
  struct FreeHandle {
    void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
  };

  HttpReply one_request(Method method, const std::string& url, std::int64_t from, const BodySink* sink,
                        const std::stop_token& stop) {
    CURL* const handle = handle_.get();
    curl_easy_reset(handle); // connections stay
    Transfer transfer{.handle = handle, .stop = &stop, .sink = sink, .reply = {}, .problem = {}};
    std::array<char, CURL_ERROR_SIZE> details{};
    HeaderList headers;
    append(headers, "Accept-Encoding: identity"); // sizes and digests are of the file itself
    if (!settings_.token.empty() && origin_of(url) == origin_)
      append(headers, "Authorization: Bearer " + settings_.token);
    const std::string range = fmt::format("{}-", from);
    curl_easy_setopt(handle, CURLOPT_URL, url.c_str());
    curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(handle, CURLOPT_USERAGENT, "hydrascope");
    curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers.get());
    curl_easy_setopt(handle, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT, connect_seconds);
    curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, silent_seconds);
    curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, details.data());
    curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, &receive_header);
    curl_easy_setopt(handle, CURLOPT_HEADERDATA, &transfer);
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, &receive_body);
    curl_easy_setopt(handle, CURLOPT_WRITEDATA, &transfer);
    curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, &watch);
    curl_easy_setopt(handle, CURLOPT_XFERINFODATA, &transfer);
    if (method == Method::head) curl_easy_setopt(handle, CURLOPT_NOBODY, 1L);
    if (from > 0) curl_easy_setopt(handle, CURLOPT_RANGE, range.c_str());
    if (!settings_.certificates.empty())
      curl_easy_setopt(handle, CURLOPT_CAINFO, settings_.certificates.c_str());
    if (stop.stop_requested()) throw Cancelled();
    const CURLcode code = curl_easy_perform(handle);
    if (transfer.problem) std::rethrow_exception(transfer.problem);
    if (stop.stop_requested()) throw Cancelled(); // however the transfer ended
    if (code != CURLE_OK)
      fail(handle, code, shown_origin(url), details[0] != '\0' ? details.data() : curl_easy_strerror(code));
    transfer.begin(); // of a reply without a body
    return std::move(transfer.reply);
  }

  HubSettings settings_;
  std::string origin_;
  std::unique_ptr<CURL, FreeHandle> handle_;
};

std::string HttpReply::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string() : found->second;
}

bool HttpReply::is_retryable() const { return status == 429 || (status >= 500 && status < 600); }

bool RetryBackoff::wait(const HttpReply* reply, const std::stop_token& stop) {
  if (attempts_ >= max_attempts) return false;
  ++attempts_;
  constexpr std::chrono::seconds longest{60};
  std::chrono::milliseconds pause = next_;
  next_ = std::min<std::chrono::milliseconds>(next_ * 2, longest);
  if (reply != nullptr && !reply->header("retry-after").empty()) {
    // In seconds; a date counts as 0.
    const long given = std::strtol(reply->header("retry-after").c_str(), nullptr, 10);
    const std::chrono::seconds asked(std::max(given, 0L));
    if (asked > longest) return false;
    pause = std::max<std::chrono::milliseconds>(pause, asked);
  }
  sleep_for(pause, stop);
  if (stop.stop_requested()) throw Cancelled();
  return true;
}

void RetryBackoff::reset() {
  attempts_ = 1;
  next_ = first_;
}

HttpSession::HttpSession(const HubSettings& settings)
    : implementation_(std::make_unique<Implementation>(settings)) {}
HttpSession::~HttpSession() = default;

HttpReply HttpSession::get(const std::string& url, const std::stop_token& stop) {
  return implementation_->with_retries(Method::get, url, stop);
}

HttpReply HttpSession::head(const std::string& url, const std::stop_token& stop) {
  return implementation_->with_retries(Method::head, url, stop);
}

HttpReply HttpSession::download(const std::string& url, std::int64_t from, const BodySink& sink,
                                const std::stop_token& stop) {
  return implementation_->request(Method::get, url, from, &sink, stop);
}

std::string url_encoded(std::string_view text, bool slashes) {
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain =
        byte < 128 && (std::isalnum(byte) != 0 || std::string_view("-._~").find(c) != std::string_view::npos);
    encoded += plain || (slashes && c == '/') ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return encoded;
}

} // namespace hydrascope
