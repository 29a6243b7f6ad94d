// Bytes as base64 and as message digests, by OpenSSL.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct evp_md_ctx_st; // OpenSSL's EVP_MD_CTX

namespace hydrascope {

// Base64 without line breaks (RFC 4648, section 4).
std::string encode_base64(std::string_view bytes);
// nullopt if the text is not base64 or contains line breaks.
std::optional<std::vector<std::uint8_t>> decode_base64(std::string_view text);

enum class DigestKind { sha1, sha256 };

// The digest of bytes that arrive in pieces.
class Digest {
public:
  // Throws Error if OpenSSL does not provide the algorithm.
  explicit Digest(DigestKind kind);
  void add(std::string_view bytes);
  // In lower case. Finishes the digest: nothing may be added afterwards.
  std::string hexadecimal();

private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

} // namespace hydrascope
