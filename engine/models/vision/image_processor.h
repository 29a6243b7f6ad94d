// Image pre-processing of vision models, as in Hugging Face's image processors: resize, centre crop, rescale,
// normalise.
#pragma once

#include <array>
#include <filesystem>
#include <optional>

#include <ATen/core/Tensor.h>

#include "engine/base/image.h"
#include "engine/models/transformer/config.h"
#include "engine/models/transformer/model.h"

namespace hydrascope {

constexpr int largest_side = 8192; // pixels of a model's input on a side

struct ImageProcessor {
  // Exactly one of these two, or neither (the picture keeps its size).
  std::optional<std::array<int, 2>> exact; // height, width; the aspect ratio is not kept
  std::optional<int> shortest_edge;
  std::optional<std::array<int, 2>> crop; // height, width; zeros around a smaller picture
  Filter filter = Filter::bicubic;
  bool torchvision_crop = false; // rounds the crop's corner to even instead of down
  bool grey = false;             // every channel is the luminance (ITU-R 601), as Pillow's mode L
  std::optional<double> rescale = 1.0 / 255;
  bool normalize = true;
  std::array<double, 3> mean{0.5, 0.5, 0.5}, deviation{0.5, 0.5, 0.5};

  // The shorter side of the output; 0 if the picture's own size is kept.
  int output_size() const;
  // The same preparation for another output size: resize and crop in proportion.
  ImageProcessor with_size(int side) const;
};

// The processor of preprocessor_config.json (missing fields take the defaults of the named class), else of
// timm's pretrained_cfg, else the family's default: shorter side to the model's size, bicubic, centre crop.
// Throws BrokenFile, Error (a kind of resizing that is not supported).
ImageProcessor read_image_processor(const std::filesystem::path& folder, const ModelConfig& config);

// The picture after resize and crop, before rescaling, and the part of the original that it shows.
struct CroppedImage {
  Image image;
  CropBox box;
};
CroppedImage resize_and_crop(const Image& image, const ImageProcessor& processor);

struct ProcessedImage {
  at::Tensor pixels; // (1,3,H,W) float32
  CropBox crop;      // in the original's pixels
};
// `side` overrides the processor's output size. Throws UsageError if the picture is empty or too long a
// strip.
ProcessedImage process_image(const Image& image, const ImageProcessor& processor, std::optional<int> side);

} // namespace hydrascope
