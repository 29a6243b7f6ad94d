// Every command that computes, on the fake device against the same on the CPU: what it prints and what it
// writes.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/base/safetensors.h"
#include "tests/commands/program.h"
#include "tests/support/free_port.h"

namespace hydrascope {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;
using test::bytes_of;
using test::Outcome;

std::string golden(const std::string& name) {
  return (test::source_folder() / "tests/golden" / name).string();
}

// A number, or a text that is one: the labels of binned cells are numbers.
std::optional<double> number_of(const json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

// The program that has the device.
std::string program_on_device() {
  return (test::program().parent_path() / "hydrascope_on_fake_device").string();
}

// FOLDER stands for the test's folder, FILE.ENDING in it for what the command writes.
struct Case {
  std::string name;      // of the command, for `figure` with the kind
  std::string arguments; // after the name
  double tolerance = 5e-4;
  bool measured = false; // its numbers are times: only their places are compared
};

void PrintTo(const Case& one, std::ostream* stream) { *stream << one.name; }

// What a machine measures, and where: not compared.
bool is_measured(const std::string& key) {
  static const std::set<std::string> keys = {"device",
                                             "device_state",
                                             "path",
                                             "paths",
                                             "seconds",
                                             "peak_bytes",
                                             "runs",
                                             "median_ms",
                                             "p95_ms",
                                             "hash",
                                             "adapter",
                                             "share_of_bound",
                                             "times_softmax",
                                             "command",
                                             "skipped",
                                             "bandwidth",
                                             "check",
                                             "base",
                                             "items_per_second",
                                             "share_of_flops",
                                             "median",
                                             "ms",
                                             "prefill_ms",
                                             "decode_ms",
                                             "decode_ms_range",
                                             "share_of_bandwidth",
                                             "state_bytes"}; // the CPU's loops pad their sums to whole lanes
  return keys.contains(key) || key.ends_with("_per_second") || key.starts_with("share_of_");
}

class DeviceCommands : public test::ProgramTest, public testing::WithParamInterface<Case> {
protected:
  DeviceCommands() {
    setenv("XDG_CACHE_HOME", at("cache").c_str(), 1);
    std::ofstream(at("texts.txt")) << "the cat sat on a mat\nhydra attention is linear\nsum over the token\n"
                                      "not on the mat\nthe linear sum is not soft\na word\n";
    std::ofstream table(at("table.tsv"));
    for (int i = 0; i < 16; ++i)
      table << (i % 2 == 0 ? "no\tthe cat sat on mat number " : "yes\tsum over the linear token ") << i
            << '\n';
    std::ofstream scores(at("scores.tsv"));
    for (int i = 0; i < 16; ++i)
      scores << (i % 2 == 0 ? "4.5\tthe cat sat on mat\tthe cat " : "0.5\tsum over the linear token\ta mat ")
             << i << '\n';
    std::ofstream boxes(at("boxes.tsv"));
    boxes << "image\tclass\tx0\ty0\tx1\ty1\n";
    for (const auto& [label, files] : {std::pair{"cat", std::vector{"gradient.png", "tiny.png"}},
                                       std::pair{"dog", std::vector{"gray.png", "tall.jpg"}}}) {
      fs::create_directories(folder_ / "pictures" / label);
      for (const char* const file : files) {
        fs::copy_file(fs::path(golden("images/pictures")) / file, folder_ / "pictures" / label / file);
        boxes << file << '\t' << label << "\t2\t2\t20\t20\n";
      }
    }
    write_tokens();
  }

  // q, k, v (1,2,12,8) and the layer's input.
  void write_tokens() const {
    std::map<std::string, std::vector<float>> numbers;
    std::map<std::string, TensorView> tensors;
    for (const char* const name : {"q", "k", "v", "x"}) {
      std::vector<float>& values = numbers[name];
      for (int i = 0; i < 2 * 12 * 8; ++i)
        values.push_back(static_cast<float>(std::sin(1.7 * i + static_cast<double>(name[0]))));
      tensors[name] = {
          ElementType::f32,
          name[0] == 'x' ? std::vector<std::int64_t>{1, 12, 16} : std::vector<std::int64_t>{1, 2, 12, 8},
          std::as_bytes(std::span(values))};
    }
    write_safetensors(at("tokens.safetensors"), tensors);
  }

  struct Answer {
    std::string output;
    std::map<std::string, std::string> files; // what it wrote, by the ending of its name
    std::int64_t operators = 0;               // that ran on the device
  };

  // Runs the program that has the device.
  Answer answer(std::string arguments, const std::string& device) const {
    const auto replace = [&](const std::string& word, const std::string& by) {
      for (auto place = arguments.find(word); place != std::string::npos;
           place = arguments.find(word, place + by.size()))
        arguments.replace(place, word.size(), by);
    };
    const std::string own = at("on-" + device);
    fs::create_directories(own);
    replace("FILE.", own + "/out.");
    replace("FOLDER", folder_.string());
    const Outcome outcome = run_on_device(arguments + " --device " + device, own);
    EXPECT_EQ(outcome.status, 0) << arguments << "\n" << outcome.errors;
    Answer result;
    result.output = outcome.output;
    std::ifstream(own + "/report") >> result.operators;
    for (const auto& entry : fs::directory_iterator(own))
      if (entry.is_regular_file() && entry.path().stem() == "out")
        result.files[entry.path().extension().string()] = bytes_of(entry);
    return result;
  }

  Outcome run_on_device(const std::string& arguments, const std::string& folder) const {
    const int status =
        std::system(fmt::format("FAKE_DEVICE_REPORT={0}/report '{1}' {2} >{0}/output 2>{0}/errors", folder,
                                program_on_device(), arguments)
                        .c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, bytes_of(folder + "/output"),
            bytes_of(folder + "/errors")};
  }

  void expect_near(const double actual, const double expected, const std::string& where) {
    ++comparisons_;
    EXPECT_NEAR(actual, expected, GetParam().tolerance * std::max(1.0, std::abs(expected))) << where;
  }

  void compare(const json& actual, const json& expected, const std::string& where) {
    if (GetParam().measured && !expected.is_structured()) {
      ++comparisons_;
      EXPECT_EQ(actual.is_string(), expected.is_string()) << where;
      EXPECT_EQ(actual.is_number(), expected.is_number()) << where;
      return;
    }
    const std::optional<double> number = number_of(actual), expected_number = number_of(expected);
    if (number && expected_number) {
      expect_near(*number, *expected_number, where);
      return;
    }
    ASSERT_EQ(actual.type(), expected.type()) << where;
    if (expected.is_object()) {
      for (const auto& [key, value] : expected.items()) {
        if (is_measured(key)) continue;
        ASSERT_TRUE(actual.contains(key)) << where << "." << key;
        compare(actual.at(key), value, fmt::format("{}.{}", where, key));
      }
    } else if (expected.is_array()) {
      ASSERT_EQ(actual.size(), expected.size()) << where;
      for (std::size_t i = 0; i < expected.size(); ++i)
        compare(actual[i], expected[i], fmt::format("{}[{}]", where, i));
    } else if (!expected.is_string() || expected.get<std::string>().find("cpu") == std::string::npos) {
      ++comparisons_;
      EXPECT_EQ(actual, expected) << where;
    }
  }

  void compare_tensors(const std::string& actual, const std::string& expected) {
    std::uint64_t length = 0;
    std::memcpy(&length, expected.data(), sizeof length);
    const json header = json::parse(expected.substr(8, length));
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__" || name.ends_with("key.bias")) continue; // whose gradient is rounding alone
      const bool half = entry.at("dtype") == "F16";
      const auto values = [&](const std::string& file) {
        if (half) return test::halves(file, name);
        const std::vector<float> floats = test::tensor(file, name);
        return std::vector<double>(floats.begin(), floats.end());
      };
      const std::vector<double> one = values(actual), other = values(expected);
      ASSERT_EQ(one.size(), other.size()) << name;
      double worst = 0;
      for (std::size_t i = 0; i < other.size(); ++i) {
        ASSERT_EQ(std::isnan(one[i]), std::isnan(other[i])) << name << " " << i;
        if (!std::isnan(other[i]))
          worst = std::max(worst, std::abs(one[i] - other[i]) / std::max(1.0, std::abs(other[i])));
      }
      ++comparisons_;
      EXPECT_LE(worst, GetParam().tolerance) << name;
    }
  }

  std::int64_t comparisons_ = 0;
};

TEST_P(DeviceCommands, GiveWhatTheCpuGives) {
  const std::string arguments = GetParam().name + " " + GetParam().arguments;
  const Answer host = answer(arguments, "cpu"), device = answer(arguments, "fake");
  EXPECT_EQ(host.operators, 0);
  EXPECT_GT(device.operators, 0) << "it did not run on the device";
  if (arguments.find("--json") != std::string::npos)
    compare(json::parse(device.output), json::parse(host.output), "");
  ASSERT_EQ(device.files.size(), host.files.size());
  for (const auto& [ending, file] : host.files) {
    const std::string& other = device.files.at(ending);
    if (ending == ".json") compare(json::parse(other), json::parse(file), ending);
    if (ending == ".safetensors") compare_tensors(other, file);
    if (ending == ".csv") {
      EXPECT_EQ(std::ranges::count(other, '\n'), std::ranges::count(file, '\n'));
    }
  }
  EXPECT_GT(comparisons_, 0);
  std::printf("%s: %lld comparisons, %lld operators on the device\n", GetParam().name.c_str(),
              static_cast<long long>(comparisons_), static_cast<long long>(device.operators));
}

const std::vector<Case>& cases() {
  static const std::string bert = " --no-adapter --model " + golden("models/bert"),
                           vit = " --no-adapter --model " + golden("models/dinov2"),
                           decoder = " --no-adapter --model " + golden("decoders/written"),
                           prompt = decoder + " --text 'The queries of a head ask'",
                           text = bert + " --text 'the cat sat on a mat'",
                           image = vit + " --image " + golden("images/pictures/gradient.png");
  static const std::vector<Case> all = [] {
    std::vector<Case> list = {
        {"run", text + " --replace back:1=hedgehog --json --output FILE.safetensors --tensors "
                       "logits,hidden,attention,focus,rollout,entropy,kl,change"},
        {"run", image + " --replace back:1=hydra-cosine --json --output FILE.safetensors --tensors "
                        "pixels,logits,hidden,attention,focus,rollout"},
        {"run", prompt + " --replace back:1=hedgehog --json --output FILE.safetensors --tensors "
                         "logits,hidden,attention,focus,entropy,kl,change,loss"},
        {"generate", prompt + " --tokens 6 --past-end --json"},
        {"generate", prompt + " --kernel hedgehog --tokens 6 --past-end --json"},
        {"generate", prompt + " --kernel hydra-cosine --tokens 6 --past-end --json"},
        {"attend", "hedgehog --input FOLDER/tokens.safetensors --output FILE.safetensors --weights --json"},
        {"attend",
         "hydra-cosine --input FOLDER/tokens.safetensors --output FILE.safetensors --weights --json"},
        {"attend",
         "softmax --causal --input FOLDER/tokens.safetensors --output FILE.safetensors --weights --json"},
        {"kernels", "--measure" + bert + " --data FOLDER/texts.txt --json"},
        {"kl", "--kernels softmax,elu,hedgehog,hydra-cosine" + bert + " --data FOLDER/texts.txt --json"},
        {"kl", "--kernels softmax,relu" + bert + " --data FOLDER/texts.txt --lengths 12 --json"},
        {"kl", "--kernels softmax,performer" + vit + " --data FOLDER/pictures --json"},
        {"distill",
         "--kernel hedgehog" + bert +
             " --data FOLDER/texts.txt --epochs 2 --batch 2 --json "
             "--curve FILE.csv -o FILE.safetensors",
         2e-3},
        {"distill",
         "--kernel hedgehog" + vit +
             " --data FOLDER/pictures --copies 2 --epochs 1 --batch 2 --json "
             "--image-size 28 -o FILE.safetensors",
         2e-3},
        {"finetune",
         bert + " --replace back:1=hedgehog --data FOLDER/table.tsv --column 2 --label-column 1 "
                "--train-layers 1,head --epochs 2 --batch 4 --dtype float32 --json -o FILE.safetensors",
         2e-3},
        {"finetune",
         vit + " --data FOLDER/pictures --validation FOLDER/pictures --train-layers 1,head --epochs 2 "
               "--batch 2 --dtype float32 --image-size 28 --json -o FILE.safetensors",
         2e-3},
        {"finetune",
         bert +
             " --objective regression --data FOLDER/scores.tsv --column 2 --pair-column 3 --label-column 1 "
             "--train-layers 0-1,head,embeddings --epochs 2 --batch 4 --dtype float32 --json "
             "-o FILE.safetensors",
         2e-3},
        {"kl",
         "--kernels softmax,elu" + bert + " --data FOLDER/scores.tsv --column 2 --pair-column 3 --json"},
        {"evaluate", bert + " --data FOLDER/table.tsv --column 2 --label-column 1 --json"},
        {"evaluate", vit + " --data FOLDER/pictures --boxes FOLDER/boxes.tsv --json"},
        {"evaluate", vit + " --data FOLDER/pictures --replace back:1=elu --json"},
        {"evaluate", "--perplexity" + decoder + " --data FOLDER/texts.txt --window 16 --json"},
        {"train",
         "--preset gpt2-wt103 --kernel elu --layers 1 --heads 2 --width 16 --chunk 16 --batch 4 --epochs 1 "
         "--tokenizer bytes --dtype float32 --data FOLDER/texts.txt --json -o FILE.d",
         2e-3},
        {"recall", "--preset small --kernel softmax,elu --sequences 32,16,16 --epochs 1 --json -o FILE.json",
         2e-3},
        {"bench kernels",
         "--kernels elu,hydra-cosine --tokens 16 --heads 2 --head-width 8 --dtype float32 --seconds 0.001 "
         "--json"},
        {"bench scaling",
         "--kernels elu,softmax --tokens 16,32 --heads 2 --head-width 8 --seconds 0.001 --json"},
        {"bench heads", "--kernels linear-cosine --tokens 16 --width 8 --seconds 0.001 --json"},
        {"bench generate", decoder + " --kernels softmax,elu --context 8,16 --tokens 2 --rounds 1 --json",
         5e-4, true},
        {"bench model",
         "--model " + golden("models/dinov2") + " --schedule softmax --batch 1 --runs 1 --warm-ups 0 --json"},
    };
    const auto figure = [&](const std::string& kind, const std::string& arguments) {
      const bool measured = kind == "timing" || kind == "scaling" || kind == "state";
      list.push_back({"figure " + kind, arguments + " -o FILE.json", 5e-4, measured});
    };
    for (const char* kind :
         {"entropy", "change", "distance", "sink", "layers", "attention", "rollout", "norms", "timing"})
      figure(kind, text + " --replace back:1=hedgehog");
    figure("loss-strip", prompt + " --kernels softmax,elu");
    figure("state", decoder + " --kernels softmax,elu --lengths 8,16");
    figure("focus", image + " --kernels softmax,hydra-cosine");
    figure("weights", text + " --kernels softmax,elu --layer 0,1 --head 0,mean");
    figure("compare", text + " --replace back:1=elu");
    figure("tokens", text + " --kernels softmax,elu --query 2");
    figure("vectors", text + " --kernels hedgehog --query 2 --key 4");
    figure("kl", bert + " --data FOLDER/texts.txt --kernels elu,hedgehog");
    figure("monotonicity", text + " --kernels softmax,taylor --head 1");
    figure("predictions", image);
    figure("scaling", bert + " --kernels elu,hydra-cosine --lengths 16,32");
    figure("heads", bert + " --counts 2,4 --data FOLDER/texts.txt --limit 3");
    figure("strategies", text + " --counts 0,1");
    figure("table", bert + " --data FOLDER/texts.txt --kernels softmax,elu");
    figure("sheet", vit + " --images FOLDER/pictures");
    return list;
  }();
  return all;
}

std::string name_of(const testing::TestParamInfo<Case>& one) {
  std::string name = one.param.name;
  std::ranges::replace(name, ' ', '_');
  std::ranges::replace(name, '-', '_');
  return fmt::format("{}_{}", one.index, name);
}

INSTANTIATE_TEST_SUITE_P(All, DeviceCommands, testing::ValuesIn(cases()), name_of);

class DeviceTable : public test::ProgramTest {
protected:
  // The first words of the lines of a help text after a heading.
  std::vector<std::string> listed(const std::string& arguments, const std::string& heading) const {
    std::istringstream help(hydrascope(arguments).output);
    std::string line;
    while (std::getline(help, line) && line != heading) {
    }
    std::vector<std::string> names;
    for (std::string name; std::getline(help, line) && std::istringstream(line) >> name;)
      if (line.find_first_not_of(' ') == 2) names.push_back(name);
    return names;
  }
  bool has_device(const std::string& command) const {
    return hydrascope(command + " --help").output.find("--device") != std::string::npos;
  }
};

TEST_F(DeviceTable, HasEveryCommandThatTakesADevice) {
  std::set<std::string> tested;
  for (const Case& one : cases()) tested.insert(one.name);
  const std::vector<std::string> commands = listed("--help", "Subcommands:");
  ASSERT_THAT(commands, testing::IsSupersetOf({"run", "distill", "recall"}));
  for (const std::string& command : commands) {
    if (command == "figure") {
      for (const std::string& kind : listed("figure --help", "Kinds:")) {
        if (kind == "loss" || kind == "roofline" || kind == "recall") continue; // draw files
        EXPECT_TRUE(tested.contains("figure " + kind)) << kind;
      }
    } else if (command == "bench") {
      for (const std::string& what : listed("bench --help", "Subcommands:")) {
        if (what == "interact" || what == "browse" || what == "write") continue; // drive the window
        EXPECT_TRUE(!has_device("bench " + what) || tested.contains("bench " + what)) << what;
      }
    } else if (has_device(command)) {
      EXPECT_TRUE(tested.contains(command)) << command;
    }
  }
}

TEST_F(DeviceTable, FeedsTheWindow) {
  const int status = std::system(
      fmt::format("FAKE_DEVICE_REPORT={} '{}' --screenshot {} --device fake --no-adapter "
                  "--text 'the cat sat on a mat' --model {} >{} 2>&1",
                  at("report"), program_on_device(), at("window.png"), golden("models/bert"), at("output"))
          .c_str());
  EXPECT_EQ(status, 0) << bytes_of(at("output"));
  EXPECT_GT(fs::file_size(at("window.png")), 10'000U);
  std::int64_t operators = 0;
  std::ifstream(at("report")) >> operators;
  EXPECT_GT(operators, 50);
}

// After such an error it refuses all work: the next rows and figures would fail alike. What was measured
// before is printed.
TEST_F(DeviceTable, EndsACommandWhereItDoesNoFurtherWork) {
  for (const char* const file : {"gradient.png", "gray.png"}) {
    fs::create_directories(folder_ / "pictures");
    fs::copy_file(fs::path(golden("images/pictures")) / file, folder_ / "pictures" / file);
  }
  fs::copy(folder_ / "pictures", folder_ / "some");
  std::ofstream(folder_ / "some" / "a.png") << "no picture";
  std::ofstream(folder_ / "texts.txt") << "the cat\nthe cat sat on the mat not on the token\n";
  const std::string sizes = " --heads 2 --head-width 8 --seconds 0.01 -N 16,32",
                    vit = " --no-adapter --model " + golden("models/dinov2");
  struct BrokenCase {
    std::string arguments, printed; // empty: nothing
  };
  for (const auto& [arguments, printed] : std::initializer_list<BrokenCase>{
           {"bench kernels --kernels hydra-cosine,elu --json" + sizes, ""},
           {"bench scaling --kernels elu,hydra-cosine" + sizes, "elu"},
           {"bench scaling --kernels elu,hydra-cosine --json" + sizes, "\"kernel\": \"elu\""},
           {"bench heads --kernels elu,hydra-cosine --width 16 -N 16 --seconds 0.01", "elu"},
           {"figure scaling --kernels hydra-cosine,elu --lengths 16,32 --model " + golden("models/bert") +
                " -o " + at("scaling.json"),
            ""},
           {"figure focus --json --kernels hydra-cosine" + vit + " --images '" + at("some") + "/*.png' -o '" +
                at("{stem}.svg") + "'",
            "\"output\": \"" + at("a.svg")},
           // The first text is too short for --query.
           {"figure tokens --kernels hydra-cosine --query 6 --no-adapter --model " + golden("models/bert") +
                " --texts " + at("texts.txt") + " -o '" + at("{line}.svg") + "'",
            "0 written, 0 kept, 1 failed"},
           {"figure sheet --kernel hydra-cosine" + vit + " --images " + at("pictures") + " -o " +
                at("sheet.json"),
            ""}}) {
    SCOPED_TRACE(arguments);
    const int status = std::system(fmt::format("FAKE_DEVICE_BROKEN=1 '{}' {} --device fake >{} 2>{}",
                                               program_on_device(), arguments, at("output"), at("errors"))
                                       .c_str());
    EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 1);
    const std::string output = bytes_of(at("output"));
    if (printed.empty())
      EXPECT_EQ(output, "");
    else
      EXPECT_THAT(output, testing::HasSubstr(printed));
    const std::string errors = bytes_of(at("errors"));
    const std::string error = "CUDA error: an illegal memory access was encountered; restart the program";
    const auto first = errors.find(error);
    EXPECT_NE(first, std::string::npos) << errors;
    EXPECT_EQ(errors.find("illegal memory access", first + error.size()), std::string::npos) << errors;
  }
}

// Two processes with a device each: gradients cross from one to the other.
TEST_F(DeviceTable, IsTrainedOnBySeveralProcesses) {
  setenv("XDG_CACHE_HOME", at("cache").c_str(), 1);
  std::ofstream lines(at("lines.txt"));
  for (int i = 0; i < 24; ++i) lines << "the cat sat on mat " << i % 7 << " not on the token " << i << '\n';
  lines.close();
  const std::string arguments = "distill --kernel hedgehog --no-adapter --model " + golden("models/bert") +
                                " --data " + at("lines.txt") + " --epochs 2 --batch 4 --threads 1";
  const Outcome alone = hydrascope(arguments + " -o " + at("alone.safetensors"));
  ASSERT_EQ(alone.status, 0) << alone.errors;
  const int port = test::free_port();
  std::string script;
  for (int rank = 0; rank < 2; ++rank)
    script += fmt::format(
        "RANK={0} WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT={1} FAKE_DEVICE_REPORT={2}{0} "
        "'{3}' {4} --device fake -o {5} >{6}{0} 2>&1 & ",
        rank, port, at("report"), program_on_device(), arguments, at("together.safetensors"), at("output"));
  std::system((script + "wait").c_str());
  ASSERT_TRUE(fs::exists(at("together.safetensors"))) << bytes_of(at("output0")) << bytes_of(at("output1"));
  for (const char* rank : {"0", "1"}) {
    std::int64_t operators = 0;
    std::ifstream(at("report") + rank) >> operators;
    EXPECT_GT(operators, 100) << rank;
  }
  const std::vector<double> one = test::all_halves(bytes_of(at("alone.safetensors"))),
                            two = test::all_halves(bytes_of(at("together.safetensors")));
  ASSERT_EQ(one.size(), two.size());
  for (std::size_t i = 0; i < one.size(); ++i)
    ASSERT_NEAR(two[i], one[i], 2e-3 * std::max(1.0, std::abs(one[i])));
}

} // namespace
} // namespace hydrascope
