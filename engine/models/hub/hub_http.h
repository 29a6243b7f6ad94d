// HTTP requests to a hub, by libcurl. Redirects are followed by hand: the token goes to the endpoint alone.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "engine/base/error.h"
#include "engine/models/hub/hub.h"

namespace hydrascope {

struct HttpReply {
  long status = 0;
  std::map<std::string, std::string> headers; // names in lower case
  std::string body;

  std::string header(const std::string& name) const; // empty if there is none
  bool is_retryable() const;                         // 429 or 5xx
};

// A transfer that did not complete.
class TransferFailure : public Error {
public:
  TransferFailure(std::string_view subject, std::string_view reason, std::string_view remedy, bool transient)
      : Error(subject, reason, remedy), transient_(transient) {}
  bool transient() const { return transient_; } // the same request may succeed later

private:
  bool transient_;
};

// Pauses between attempts, each twice as long as the one before (exponential backoff).
class RetryBackoff {
public:
  explicit RetryBackoff(std::chrono::milliseconds first) : first_(first), next_(first) {}
  // Returns whether to make another attempt, after a pause: the reply's Retry-After if it has one. Throws
  // Cancelled.
  bool wait(const HttpReply* reply, const std::stop_token& stop);
  void reset(); // after progress

private:
  std::chrono::milliseconds first_, next_;
  int attempts_ = 1;
};

// Receives a body in pieces. Both functions may throw, which ends the transfer.
struct BodySink {
  std::function<bool(const HttpReply&)> begin; // after the headers; whether to receive the body
  std::function<void(std::string_view)> receive;
};

class HttpSession {
public:
  explicit HttpSession(const HubSettings& settings);
  ~HttpSession();
  HttpSession(const HttpSession&) = delete;
  HttpSession& operator=(const HttpSession&) = delete;

  // With retries; replies of any status are returned. `get` follows all redirects, `head` only those within
  // the endpoint; headers that begin with "x-" are kept over redirects. Throw TransferFailure, Error,
  // Cancelled.
  HttpReply get(const std::string& url, const std::stop_token& stop);
  HttpReply head(const std::string& url, const std::stop_token& stop);
  // From byte `from` on, without retries. A body that the sink rejects is in the reply, truncated to 64 kB.
  HttpReply download(const std::string& url, std::int64_t from, const BodySink& sink,
                     const std::stop_token& stop);

private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

// The text with all characters but letters, digits, '-', '.', '_' and '~' as %XX; `slashes`: '/' is kept,
// too.
std::string url_encoded(std::string_view text, bool slashes);

} // namespace hydrascope
