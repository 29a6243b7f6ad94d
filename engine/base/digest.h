// Message digests by OpenSSL, of bytes that come piece by piece.
#pragma once

#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st; // OpenSSL's EVP_MD_CTX

namespace hydrascope {

enum class DigestKind { sha1, sha256 };

class Digest {
public:
  // Throws Error if OpenSSL cannot start it.
  explicit Digest(DigestKind kind);
  void add(std::string_view bytes);
  // In lower case; what comes after is an error of the caller.
  std::string hexadecimal();

private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

} // namespace hydrascope
