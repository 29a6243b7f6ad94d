#include "engine/base/encoding.h"

#include <array>

#include <openssl/evp.h>

#include "engine/base/error.h"

namespace hydrascope {

std::string encode_base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0'); // OpenSSL ends it with a zero
  const int length =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(length));
  return text;
}

std::optional<std::vector<std::uint8_t>> decode_base64(std::string_view text) {
  const bool blank = text.find_first_of(" \t\r\n") != std::string_view::npos; // OpenSSL trims them
  if (text.size() % 4 != 0 || blank) return std::nullopt;
  std::size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  std::vector<std::uint8_t> bytes(text.size() / 4 * 3);
  const int length = EVP_DecodeBlock(bytes.data(), reinterpret_cast<const unsigned char*>(text.data()),
                                     static_cast<int>(text.size()));
  if (length < 0) return std::nullopt;
  bytes.resize(static_cast<std::size_t>(length) - padding);
  return bytes;
}

void Digest::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Digest::Digest(DigestKind kind) : context_(EVP_MD_CTX_new()) {
  const EVP_MD* const algorithm = kind == DigestKind::sha1 ? EVP_sha1() : EVP_sha256();
  if (!context_ || EVP_DigestInit_ex(context_.get(), algorithm, nullptr) != 1)
    throw Error(kind == DigestKind::sha1 ? "SHA-1" : "SHA-256", "OpenSSL could not start it",
                "free memory, or check the libcrypto that is installed");
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
