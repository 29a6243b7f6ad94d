// Pre-processing against Hugging Face's image processors (PIL back end).
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "engine/models/vision/image_processor.h"
#include "tests/engine/models/golden.h"

namespace hydrascope::test {
namespace {

namespace fs = std::filesystem;

ModelConfig vision_config(const std::string& family = "vit") {
  ModelConfig config;
  config.family = family;
  config.image_height = config.image_width = 24;
  config.patch_height = config.patch_width = 8;
  return config;
}

class ImageProcessorGolden : public testing::TestWithParam<const char*> {};

TEST_P(ImageProcessorGolden, AgreesWithHuggingFace) {
  const fs::path images = golden_folder() / "images";
  const auto expected = read_tensors(images / GetParam() / "expected.safetensors");
  const auto decoded = read_tensors(images / "decoded.safetensors");
  const ImageProcessor processor = read_image_processor(images / GetParam(), vision_config());
  for (const auto& [name, picture] : expected) {
    if (name == "pixels") continue;
    Image image;
    if (const auto jpeg = decoded.find(name);
        jpeg != decoded.end()) { // without the decoder's own differences
      image.height = static_cast<int>(jpeg->second.size(0));
      image.width = static_cast<int>(jpeg->second.size(1));
      const auto* bytes = jpeg->second.const_data_ptr<std::uint8_t>();
      image.rgb.assign(bytes, bytes + jpeg->second.numel());
    } else {
      image = load_image(images / "pictures" / (name + ".png"));
    }
    const Image cropped = resize_and_crop(image, processor).image;
    ASSERT_EQ(cropped.height, picture.size(0)) << name;
    ASSERT_EQ(cropped.width, picture.size(1)) << name;
    // One level: Pillow 13 takes the passes in the other order where a picture loses more in height.
    const auto* want = picture.const_data_ptr<std::uint8_t>();
    int largest = 0;
    for (std::size_t i = 0; i < cropped.rgb.size(); ++i)
      largest = std::max(largest, std::abs(int{cropped.rgb[i]} - int{want[i]}));
    EXPECT_LE(largest, 1) << name;
  }
  // The whole way for one picture: exact up to the rounding of floats, but for that one level.
  const Image gradient = load_image(images / "pictures" / "gradient.png");
  const at::Tensor pixels = process_image(gradient, processor, {}).pixels;
  EXPECT_TRUE(close_to(pixels, expected.at("pixels"), 1e-5)) << GetParam();
}

INSTANTIATE_TEST_SUITE_P(Cases, ImageProcessorGolden,
                         testing::Values("shortest-bicubic-crop", "exact-bilinear", "legacy-deit",
                                         "legacy-vit", "default-deit", "default-bit", "nearest-unnormalised",
                                         "lanczos", "crop-larger", "no-resize", "no-crop", "no-rescale"));

Image plain_image(int width, int height) {
  return {width, height, std::vector<std::uint8_t>(3 * static_cast<std::size_t>(width * height), 128)};
}

TEST(ImageProcessor, WithoutAFileTheShorterSideFits) {
  const ImageProcessor processor = read_image_processor("/nonexistent", vision_config("deit"));
  const ProcessedImage processed = process_image(plain_image(96, 48), processor, {});
  EXPECT_EQ(processed.pixels.sizes(), (at::IntArrayRef{1, 3, 24, 24}));
  EXPECT_DOUBLE_EQ(processed.crop.x, 24);
  EXPECT_DOUBLE_EQ(processed.crop.y, 0);
  EXPECT_DOUBLE_EQ(processed.crop.width, 48);
  EXPECT_DOUBLE_EQ(processed.crop.height, 48);
  EXPECT_NEAR(processed.pixels[0][0][0][0].item<float>(), (128 / 255.0 - 0.485) / 0.229, 1e-6);
}

TEST(ImageProcessor, TimmResizesByItsCropShare) {
  ModelConfig config = vision_config();
  config.timm = TimmPreparation{};
  config.timm->crop_fraction = 0.9;
  const ImageProcessor processor = read_image_processor("/nonexistent", config);
  EXPECT_EQ(processor.shortest_edge, 26);
  EXPECT_EQ(processor.output_size(), 24);
}

TEST(ImageProcessor, AnotherSizeKeepsTheProportion) {
  const fs::path folder = golden_folder() / "images" / "shortest-bicubic-crop"; // 24, then 20
  const ImageProcessor twice = read_image_processor(folder, vision_config()).with_size(40);
  EXPECT_EQ(twice.shortest_edge, 48);
  EXPECT_EQ(twice.output_size(), 40);
  const ProcessedImage processed = process_image(plain_image(100, 60), twice, {});
  EXPECT_EQ(processed.pixels.size(3), 40);
}

TEST(ImageProcessor, TheCropBoxCoversTheWholePatches) {
  const auto model = load_model(golden_folder() / "models" / "dinov2"); // 36, then 28; patch 14
  const ModelInput input = model->prepare_image(plain_image(72, 72));
  EXPECT_EQ(input.pixels.size(2), 28);
  EXPECT_EQ(input.layout.rows, 2);
  EXPECT_DOUBLE_EQ(input.crop.x, 8);
  EXPECT_DOUBLE_EQ(input.crop.width, 56);
  const ModelInput odd = model->prepare_image(plain_image(72, 72), 30); // two patches of 14 in 30 pixels
  EXPECT_EQ(odd.layout.columns, 2);
  EXPECT_LT(odd.crop.width, 72 * 30 / 38.0);
}

TEST(ImageProcessor, ImpossibleSizesAreRefused) {
  const auto model = load_model(golden_folder() / "models" / "dinov2");
  EXPECT_THROW(model->prepare_image(plain_image(72, 72), 13), UsageError);
  EXPECT_THROW(model->prepare_image(plain_image(72, 72), 1'000'000), UsageError);
  EXPECT_THROW(model->prepare_image(plain_image(72, 72), -5), UsageError);
  EXPECT_THROW(model->prepare_image(Image{}, {}), UsageError);
}

// A crop of 16 of a picture of 8192, told to give 224: the picture would be resized to 114,688 pixels a side.
TEST(ImageProcessor, SizesThatFillTheMemoryAreRefused) {
  ImageProcessor processor;
  processor.shortest_edge = 8192;
  processor.crop = {16, 16};
  const std::string message =
      message_of<UsageError>([&] { process_image(plain_image(72, 72), processor, 224); });
  EXPECT_NE(message.find("114688 by 114688 pixels"), std::string::npos) << message;
  processor.shortest_edge.reset();
  processor.crop = {1'000'000, 1000};
  const std::string crop = message_of<UsageError>([&] { process_image(plain_image(72, 72), processor, {}); });
  EXPECT_NE(crop.find("cropped to 1000 by 1000000 pixels"), std::string::npos) << crop;
}

TEST(ImageProcessor, BrokenFilesAreRefused) {
  const ScratchFolder scratch;
  const auto message = [&](const std::string& text) {
    scratch.write("preprocessor_config.json", text);
    return message_of<Error>([&] { read_image_processor(scratch.path(), vision_config()); });
  };
  EXPECT_NE(message("{").find("not a JSON object"), std::string::npos);
  EXPECT_NE(message(R"({"size": -4})").find("size"), std::string::npos);
  EXPECT_NE(message(R"({"size": {"longest_edge": 4}})").find("not supported"), std::string::npos);
  EXPECT_NE(message(R"({"image_std": [0, 1, 1]})").find("image_std"), std::string::npos);
  EXPECT_NE(message(R"({"image_mean": [1, 1]})").find("three"), std::string::npos);
  EXPECT_NE(message(R"({"resample": 9})").find("resample"), std::string::npos);
}

} // namespace
} // namespace hydrascope::test
