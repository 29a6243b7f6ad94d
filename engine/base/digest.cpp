#include "engine/base/digest.h"

#include <array>

#include <openssl/evp.h>

#include "engine/base/error.h"

namespace hydrascope {

void Digest::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Digest::Digest(DigestKind kind) : context_(EVP_MD_CTX_new()) {
  const EVP_MD* const algorithm = kind == DigestKind::sha1 ? EVP_sha1() : EVP_sha256();
  if (!context_ || EVP_DigestInit_ex(context_.get(), algorithm, nullptr) != 1)
    throw Error(kind == DigestKind::sha1 ? "SHA-1" : "SHA-256", "OpenSSL could not start it",
                "check the libcrypto that is installed");
}

void Digest::add(std::string_view bytes) { EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()); }

std::string Digest::hexadecimal() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  EVP_DigestFinal_ex(context_.get(), digest.data(), &length);
  constexpr const char* digits = "0123456789abcdef";
  std::string text;
  for (unsigned int i = 0; i < length; ++i) {
    text += digits[digest[i] >> 4];
    text += digits[digest[i] & 15];
  }
  return text;
}

} // namespace hydrascope
