// Sessions, which are written as they were read. A picture's model and a text's are tiny, so that reading is
// fast; no example picture is there, and pictures come from within the session.
#include <utility>

#include "app/document/arrangement.h"
#include "app/document/session.h"
#include "engine/base/paths.h"
#include "tests/fuzz/fuzz.h"

using namespace hydrascope;

namespace {

std::filesystem::path file() { return fuzz::folder() / "x.json"; }

std::string written(const app::ReadSession& read) {
  app::FileHashes hashes;
  return app::session_text(read.session, fuzz::folder(), hashes);
}

} // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const std::filesystem::path golden = resource_root() / "tests" / "golden" / "models";
  for (const auto& [name, from] : {std::pair{"vit-small", "deit"}, std::pair{"minilm", "bert"}}) {
    const std::filesystem::path folder = fuzz::folder() / "models" / name;
    std::filesystem::create_directories(folder);
    std::filesystem::copy_file(golden / from / "config.json", folder / "config.json",
                               std::filesystem::copy_options::overwrite_existing);
  }
  for (const char* const variable : {"HYDRASCOPE_DEPS", "HOME", "XDG_DATA_HOME", "HF_HOME"})
    setenv(variable, fuzz::folder().c_str(), 1);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, const std::size_t size) {
  return fuzz::accepts_or_refuses([&] {
    const std::string_view text = fuzz::text_of(data, size);
    app::is_session(text);
    app::read_lesson(text, file());
    const app::ReadSession read = app::read_session(text, file());
    if (const auto sound = app::sound_arrangement(read.session.arrangement);
        sound && app::sound_arrangement(*sound) != sound)
      std::abort();
    const std::string once = written(read);
    fuzz::must_accept([&] {
      if (written(app::read_session(once, file())) != once) std::abort();
    });
  });
}
