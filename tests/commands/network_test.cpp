// Nothing but `fetch` uses the network: the program's system calls, watched by strace.
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/commands/program.h"
#include "tests/support/hub_server.h"

namespace {

using namespace hydrascope::test;
using testing::HasSubstr, testing::IsEmpty;

class NetworkUse : public ProgramTest {
protected:
  NetworkUse() : environment_(hub_environment(server_, folder_ / "hf")), home_("HOME", folder_.string()) {
    server_.add_folder("org/tiny", source_folder() / "tests/golden/models/deit");
    std::ofstream(at("lines.txt")) << "the cat sat\nthe dog ran\nall of it\nmore text here\n";
    std::ofstream(at("pairs.tsv")) << "the cat\tred\nthe dog\tblue\n";
    const std::string header = R"({"q":{"dtype":"F32","shape":[1,1,4,2],"data_offsets":[0,32]},)"
                               R"("k":{"dtype":"F32","shape":[1,1,4,2],"data_offsets":[32,64]},)"
                               R"("v":{"dtype":"F32","shape":[1,1,4,2],"data_offsets":[64,96]}})";
    const std::uint64_t length = header.size();
    std::ofstream stream(at("qkv.safetensors"), std::ios::binary);
    stream.write(reinterpret_cast<const char*>(&length), sizeof length);
    stream << header << std::string(96, '\0');
  }

  void SetUp() override {
    if (std::system("command -v strace >/dev/null") != 0) GTEST_SKIP() << "strace is not installed";
    if (std::system("strace -qq -e trace=network true 2>/dev/null") != 0)
      GTEST_SKIP() << "no process can be traced here: ptrace is not permitted";
  }

  // The calls for sockets, a line each, of the program and all that it starts.
  std::vector<std::string> calls() const {
    std::vector<std::string> found;
    std::istringstream lines(bytes_of(at("trace.txt")));
    for (std::string line; std::getline(lines, line);)
      if (line.find("AF_") != std::string::npos) found.push_back(line);
    return found;
  }
  // Those that go beyond this machine's own sockets in files: AF_INET, AF_INET6, AF_PACKET …
  std::vector<std::string> outward() const {
    std::vector<std::string> found = calls();
    std::erase_if(found, [](const std::string& line) { return line.find("AF_UNIX") != std::string::npos; });
    return found;
  }
  std::string tracer() const { return "strace -f -qq -e trace=network -o '" + at("trace.txt") + "'"; }
  // Runs the program's command to its end.
  void trace(const std::string& arguments) const {
    fs::remove(at("trace.txt"));
    const int status = std::system(fmt::format("{} '{}' {} >'{}' 2>&1 </dev/null", tracer(),
                                               program().string(), arguments, at("output.txt"))
                                       .c_str());
    EXPECT_EQ(WEXITSTATUS(status), 0) << arguments << "\n" << bytes_of(at("output.txt"));
    EXPECT_TRUE(fs::exists(at("trace.txt"))) << arguments;
  }

  void expect_no_connection(const std::string& arguments) const {
    trace(arguments);
    EXPECT_THAT(outward(), IsEmpty()) << arguments;
  }

  static std::string golden(const std::string& name) {
    return (source_folder() / "tests/golden" / name).string();
  }

  HubServer server_;
  ScopedEnvironment environment_, home_; // the program inherits them
};

TEST_F(NetworkUse, FetchConnects) {
  trace("fetch org/tiny");
  EXPECT_THAT(outward(), testing::Contains(HasSubstr("connect(")));
  EXPECT_FALSE(server_.requests().empty());
}

TEST_F(NetworkUse, CommandsMakeNoConnection) {
  const std::string image = "--model " + golden("models/deit") + " --image-size 16 --image " + picture;
  const std::string text = "--model " + golden("models/bert") + " ";
  const std::string data = text + "--no-adapter --data " + at("lines.txt") + " ";
  for (const std::string& arguments :
       {"run --json " + image, "run --json " + text + "--text cat",
        "run --json " + golden("captures/bert.safetensors"),
        "generate --tokens 3 --text cat --model " + golden("decoders/written"),
        "figure focus " + image + " -o " + at("focus.svg"), "reproduce " + at("focus.svg"),
        "figure --session " + (source_folder() / "docs/window-sentence.json").string() + " -o " +
            at("panels"),
        "kl --kernels elu --json " + data,
        "distill --kernel hedgehog --epochs 1 -o " + at("maps.safetensors") + " " + data,
        "run --json --kernel hedgehog --adapter " + at("maps.safetensors") + " " + text + "--text cat",
        "evaluate --json --label-column 2 --kernel elu --adapter " + golden("adapters/bert-elu.safetensors") +
            " " + text + "--data " + at("pairs.tsv"),
        "attend elu --json --input " + at("qkv.safetensors") + " --output " + at("attended.safetensors"),
        "figure focus --model " + golden("models/deit") + " --image-size 16 --images " + picture +
            " --kernels softmax,elu -o '" + at("{stem}-{kernel}.svg") + "'",
        "tokenize " + text, "flops --model " + golden("models/deit")})
    expect_no_connection(arguments);
  for (const char* const arguments :
       {"doctor", "kernels", "completion bash", "manual", "--help", "--version"})
    expect_no_connection(arguments);
  EXPECT_TRUE(server_.requests().empty());
}

TEST_F(NetworkUse, TrainingMakesNoConnection) {
  const std::string once = " --epochs 1 --threads 1 -o ";
  for (const std::string& arguments :
       {"train --preset lra-listops --layers 1 --width 16 --heads 2 --chunk 20 --sequences 8 4 4" + once +
            at("trained"),
        "finetune --train-layers head --label-column 2 --no-adapter --model " + golden("models/bert") +
            " --data " + at("pairs.tsv") + once + at("head.safetensors"),
        "finetune --kernel elu --lora rank=2,alpha=4 --chunk 16 --no-adapter --model " +
            golden("decoders/written") + " --data " + at("lines.txt") + once + at("lora.safetensors"),
        "recall --preset small --kernel elu --sequences 8 4 4" + once + at("recall.json")})
    expect_no_connection(arguments);
  EXPECT_TRUE(server_.requests().empty());
}

TEST_F(NetworkUse, BenchmarksMakeNoConnection) {
  const std::string kernels = " --kernels elu --tokens 16 --seconds 0.01";
  const std::string window = " --image-size 16 --model " + golden("models/deit") + " " + picture;
  const std::string decoder = " --model " + golden("decoders/written");
  for (const std::string& arguments :
       {"bench kernels" + kernels, "bench scaling" + kernels, "bench heads --width 4" + kernels,
        "bench model --batch 1 --runs 1 --warm-ups 0 --schedule elu --model " + golden("models/vit"),
        "bench generate --context 4 --tokens 2 --rounds 1" + decoder,
        "bench write --context 4 --tokens 3" + decoder, "bench interact --repeats 1" + window,
        "bench browse --heads 1" + window})
    expect_no_connection(arguments);
  EXPECT_TRUE(server_.requests().empty());
}

// A model that is not there is named, not fetched.
TEST_F(NetworkUse, AMissingModelIsNotFetched) {
  std::system(fmt::format("{} '{}' run --model org/tiny --text cat >/dev/null 2>'{}'", tracer(),
                          program().string(), at("errors.txt"))
                  .c_str());
  EXPECT_TRUE(fs::exists(at("trace.txt")));
  EXPECT_THAT(bytes_of(at("errors.txt")), HasSubstr("hydrascope fetch org/tiny"));
  EXPECT_THAT(outward(), IsEmpty());
}

TEST_F(NetworkUse, TheWindowMakesNoConnection) {
  expect_no_connection(
      fmt::format("--model {} --image-size 16 {} --screenshot {} --action view.layout.compare "
                  "--action file.get_model --action help.about",
                  golden("models/deit"), picture, at("window.png")));
  EXPECT_TRUE(fs::exists(at("window.png")));
  std::ofstream(at("script.txt")) << "action write.start\nhold 1\n";
  expect_no_connection(fmt::format("--model {} --text 'the cat' --record {} --script {} --size 640x400",
                                   golden("decoders/written"), at("window.webp"), at("script.txt")));
  EXPECT_TRUE(fs::exists(at("window.webp")));
  EXPECT_TRUE(server_.requests().empty());
}

// The display and the socket of --listen are files of this machine.
TEST_F(NetworkUse, AWindowOnADisplayConnectsToTheDisplayAlone) {
  if (std::system("command -v xvfb-run >/dev/null") != 0) GTEST_SKIP() << "xvfb-run is not installed";
  const std::string script = fmt::format(
      "env -u WAYLAND_DISPLAY {} -D '{}' --listen --socket '{}' --model {} --image-size 16 {} & "
      "for i in $(seq 600); do if [ -S '{}' ]; then break; fi; sleep 0.1; done; sleep 3; kill $!; wait; "
      "sleep 0.5",
      tracer(), program().string(), at("socket"), golden("models/deit"), picture, at("socket"));
  std::ofstream(at("script.sh")) << script;
  std::system(("xvfb-run -a sh '" + at("script.sh") + "' >'" + at("output.txt") + "' 2>&1").c_str());
  EXPECT_THAT(calls(), testing::Contains(HasSubstr(".X11-unix"))) << bytes_of(at("output.txt"));
  EXPECT_THAT(calls(), testing::Contains(HasSubstr("bind("))) << bytes_of(at("output.txt"));
  EXPECT_THAT(outward(), IsEmpty());
  EXPECT_TRUE(server_.requests().empty());
}

} // namespace
