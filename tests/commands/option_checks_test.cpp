// Values that no option takes, and files that a command would replace or could not write.
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/commands/program.h"
#include "tests/support/hub_server.h"

namespace {

using namespace hydrascope::test;

class OptionChecks : public ProgramTest {
protected:
  // A table of texts with labels.
  std::string table(const std::string& name) const {
    std::ofstream file(at(name));
    for (int i = 0; i < 4; ++i) file << "the cat sat\t0\nthe dog ran\t1\n";
    return at(name);
  }

  // The command is refused, and the file stays as it is.
  void expect_kept(const std::string& file, const std::string& arguments,
                   const std::string& mentioned) const {
    const std::string before = bytes_of(file);
    expect_error(arguments, 2, mentioned);
    EXPECT_EQ(bytes_of(file), before) << arguments;
  }
};

TEST_F(OptionChecks, NumbersAreNumbers) {
  const std::string finetune = "finetune --model minilm --data " + table("t.tsv") + " -o " + at("x") + " ";
  expect_error(finetune + "--warmup nan", 2, "--warmup: nan is not a number");
  expect_error(finetune + "--weight-decay nan", 2, "--weight-decay: nan is not a number");
  expect_error(finetune + "--lr inf", 2, "--learning-rate: inf is not a number");
  expect_error(finetune + "--lr 1e-400", 2, "--learning-rate: 1e-400 is not a number");
  expect_error(finetune + "--lr 0", 2, "--learning-rate: 0 is not above 0");
  expect_error(finetune + "--epochs 1.5", 2, "--epochs: 1.5 is not a whole number");
  expect_error("run --text a --threads 010", 2, "--threads: 010 is not a whole number");
  expect_error(finetune + "--seed -1", 2, "--seed: -1 is not a whole number from 0");
  expect_error("run --text a --seed 99999999999999999999", 2, "--seed: 99999999999999999999 is not a whole");
  expect_error("run --text a --threads 0", 2, "--threads: 0 is not from 1 to ");
  expect_error("run --text a --threads 100000", 2, "--threads: 100000 is not from 1 to ");
  expect_error("bench kernels --threads 100000", 2, "--threads: 100000 is not from 1 to ");
  expect_error("figure focus --image " + picture + " --opacity nan -o " + at("f.svg"), 2, "--opacity: nan");
  expect_error("bench kernels --seconds nan", 2, "--seconds: nan is not a number");
  EXPECT_FALSE(fs::exists(at("x")));
}

TEST_F(OptionChecks, AnEmptyValueIsRefused) {
  expect_error("kl --data ''", 2, "--data: its value is empty");
  expect_error("run --text a --query ''", 2, "--query: its value is empty");
  expect_error("bench kernels --kernels ''", 2, "--kernels: its value is empty");
  expect_error("finetune --model minilm --data " + table("t.tsv") + " -o ''", 2,
               "--output: its value is empty");
  expect_error("--screenshot '' " + picture, 2, "--screenshot: its value is empty");
  expect_error("''", 2, "FILE: its value is empty");
  EXPECT_EQ(hydrascope("run --text ''").status, 0); // [CLS] and [SEP] alone
}

TEST_F(OptionChecks, NoOutputReplacesAnInput) {
  const std::string data = table("t.tsv");
  const std::string finetune = "finetune --model minilm --epochs 1 --data " + data;
  expect_kept(data, finetune + " -o " + data, "would replace the file of --data; name another one");
  expect_kept(data, finetune + " -o " + at("a.safetensors") + " --curve " + at("./t.tsv"),
              "the file of --data");
  expect_kept(data, "distill --kernel hedgehog --model minilm --data " + data + " -o " + data, "of --data");
  expect_error(finetune + " -o " + at("a") + " --curve " + at("./a"), 2, "is also the file of --");
  fs::copy_file(picture, at("c.png"));
  const std::string copy = at("c.png");
  expect_kept(copy, "figure focus --image " + copy + " -o " + copy, "would replace the file of --image");
  fs::create_symlink(copy, at("link.png"));
  expect_kept(copy, "--screenshot " + at("link.png") + " " + copy, "would replace the file of FILE");
  const std::string figure = "figure focus --image " + copy + " -o " + at("f.svg");
  ASSERT_EQ(hydrascope(figure).status, 0);
  expect_kept(copy, "reproduce " + at("f.svg") + " -o " + copy, "would replace the file of --image");
}

// What looks like the cases above.
TEST_F(OptionChecks, OtherNamesAreTaken) {
  EXPECT_EQ(hydrascope("run --text a --pair ''").status, 0);
  EXPECT_EQ(
      hydrascope("distill --kernel hedgehog --model vit-small --epochs 1 --image-size 28 --limit 4 --data " +
                 fs::path(picture).parent_path().string() + " -o " + at("a"))
          .status,
      0);
  std::ofstream(at("elu")) << "[]";
  const fs::path here = fs::current_path();
  fs::current_path(folder_); // the kernel's name is that of a file here
  EXPECT_EQ(hydrascope("recall --kernel elu --preset small --epochs 1 --sequences 8,4,4 -o elu").status, 0);
  fs::current_path(here);
  fs::create_directory(at("views"));
  EXPECT_EQ(hydrascope("figure --session " + (source_folder() / "docs/window-sentence.json").string() +
                       " -o " + at("views"))
                .status,
            0);
}

TEST_F(OptionChecks, AnOutputThatCannotBeWrittenIsRefusedBeforeTheWork) {
  const std::string finetune = "finetune --model minilm --epochs 1 --data " + table("t.tsv");
  expect_error(finetune + " -o " + folder_.string(), 2, "is a folder; name a file");
  expect_error(finetune + " -o " + at("x") + " --curve " + folder_.string(), 2, "is a folder; name a file");
  expect_error("recall --kernel elu -o " + folder_.string(), 2, "is a folder; name a file");
  EXPECT_FALSE(fs::exists(folder_.string() + ".checkpoint"));
  expect_error("--screenshot " + at("s.jpg") + " " + picture, 2, "a screenshot is a PNG; name it s.png");
  expect_error("--size 9999x9999 --scale 2.5 --screenshot " + at("s.png"), 2, "at most 16384 can be drawn");
}

TEST_F(OptionChecks, OptionsOfPicturesAreNotForTexts) {
  const std::string finetune = "finetune --model minilm --data " + table("t.tsv") + " -o " + at("x") + " ";
  for (const std::string option : {"--crop 0.5", "--mixup 0.2", "--copies 2", "--no-flip"})
    expect_error(finetune + option, 2,
                 option.substr(0, option.find(' ')) + ": is for pictures; leave it out");
}

TEST_F(OptionChecks, AFileNameMayHoldALineBreak) {
  expect_error("run --image '" + at("missing\nname.png") + "'", 1, "missing\\nname.png: No such file");
}

TEST_F(OptionChecks, GenerateWritesNothingBeforeAnError) {
  const Outcome outcome = hydrascope("generate --text 'The cat' --top-p 2");
  EXPECT_EQ(outcome.status, 2) << outcome.errors;
  EXPECT_EQ(outcome.output, "");
}

TEST_F(OptionChecks, TheWindowNeedsADisplay) {
  const ScopedEnvironment display("DISPLAY", ""), wayland("WAYLAND_DISPLAY", ""); // unset
  expect_error(picture, 1, "display: ");
  expect_error("", 1, "start with a display, or use a subcommand");
}

} // namespace
