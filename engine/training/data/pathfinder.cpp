#include "engine/training/data/pathfinder.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/base/temporary.h"
#include "engine/training/data/sampling.h"

namespace hydrascope::training {
namespace {

struct Point {
  double x = 0, y = 0;
};
using Curve = std::vector<Point>; // one a pixel of its length

// In pixels.
constexpr double dash = 3, gap = 1.5, apart = 3.5, margin = 2.5, line = 0.6, dot = 1.7;
constexpr double bend = 0.18; // radians by which a path turns within a pixel, at most

double distance(const Point& a, const Point& b) { return std::hypot(a.x - b.x, a.y - b.y); }

class Drawing {
public:
  Drawing(const PathfinderShape& shape, const std::uint64_t key) : shape_(shape), key_(key) {}

  // False if the paths do not fit beside each other with these random numbers.
  bool draw(const bool connected) {
    const double length = shape_.dashes * (dash + gap);
    if (!add_curve(length) || !add_curve(length)) return false;
    dots_ = {curves_[0].front(), connected ? curves_[0].back() : curves_[1].front()};
    for (int i = 0; i < shape_.distractors; ++i)
      for (int attempt = 0; attempt < 20 && !add_curve(length / 3); ++attempt) {
      }
    return true;
  }

  Image picture() const {
    constexpr int samples = 4; // in each direction of a pixel
    Image image{shape_.side, shape_.side, {}};
    for (int y = 0; y < shape_.side; ++y)
      for (int x = 0; x < shape_.side; ++x) {
        int covered = 0;
        for (int i = 0; i < samples * samples; ++i) {
          const int column = i % samples, row = i / samples;
          covered += is_drawn({x + (column + 0.5) / samples, y + (row + 0.5) / samples}) ? 1 : 0;
        }
        image.rgb.insert(image.rgb.end(), 3, static_cast<std::uint8_t>(255 * covered / (samples * samples)));
      }
    return image;
  }

private:
  double random() { return unit(mix({key_, next_++})); }

  // Adds a path that stays inside and apart from the others, and from itself.
  bool add_curve(const double length) {
    const double room = shape_.side - 2 * margin;
    Point at{margin + room * random(), margin + room * random()};
    double heading = 2 * std::numbers::pi * random(), turn = 0;
    Curve curve;
    const int steps = static_cast<int>(std::ceil(length));
    for (int step = 0; step < steps; ++step) {
      const bool outside = at.x < margin || at.y < margin || at.x > margin + room || at.y > margin + room;
      if (outside || !is_free(at, curve)) return false;
      curve.push_back(at);
      turn = std::clamp(turn + 0.1 * (random() - 0.5), -bend, bend);
      heading += turn;
      at = {at.x + std::cos(heading), at.y + std::sin(heading)};
    }
    curves_.push_back(std::move(curve));
    return true;
  }

  bool is_free(const Point& at, const Curve& own) const {
    const auto near = [&](const Point& other) { return distance(at, other) < apart; };
    for (const Curve& curve : curves_)
      if (std::ranges::any_of(curve, near)) return false;
    constexpr std::ptrdiff_t neighbours = 5;
    return std::ssize(own) <= neighbours || std::none_of(own.begin(), own.end() - neighbours, near);
  }

  bool is_drawn(const Point& at) const {
    if (std::ranges::any_of(dots_, [&](const Point& one) { return distance(at, one) < dot; })) return true;
    for (const Curve& curve : curves_)
      for (std::size_t i = 0; i < curve.size(); ++i) {
        const double phase = std::fmod(static_cast<double>(i), dash + gap);
        if (phase < dash && distance(at, curve[i]) < line) return true;
      }
    return false;
  }

  const PathfinderShape& shape_;
  std::uint64_t key_, next_ = 0;
  std::vector<Curve> curves_; // the two long ones first
  std::vector<Point> dots_;
};

} // namespace

Image pathfinder_picture(const PathfinderShape& shape, const bool connected, const std::uint64_t key) {
  constexpr std::uint64_t attempts = 20'000;
  for (std::uint64_t attempt = 0; attempt < attempts; ++attempt) {
    Drawing drawing(shape, mix({key, attempt}));
    if (drawing.draw(connected)) return drawing.picture();
  }
  throw UsageError("--image-size", fmt::format("{} pixels are too few for the paths", shape.side),
                   "use 32 or more");
}

PathfinderFolders pathfinder_folders(const PathfinderShape& shape, const int training, const int validation,
                                     const int test, const std::uint64_t seed) {
  const std::filesystem::path folder = cache_folder() / "pathfinder" /
                                       fmt::format("{}px-{}dashes-{}-{}-{}-seed{}", shape.side, shape.dashes,
                                                   training, validation, test, seed);
  const PathfinderFolders folders{folder / "train", folder / "validation", folder / "test"};
  const std::filesystem::path done = folder / "complete";
  if (std::filesystem::exists(done)) return folders;
  std::uint64_t next = 0;
  for (const auto& [part, count] : {std::pair(folders.training, training),
                                    std::pair(folders.validation, validation), std::pair(folders.test, test)})
    for (int i = 0; i < std::max(count, 2); ++i) {
      const bool connected = i % 2 == 1;
      const std::filesystem::path label = part / pathfinder_labels[connected ? 1 : 0];
      create_folders(label);
      TemporaryFile file(label / fmt::format("{:06}.png", i));
      file.write(encode_png(pathfinder_picture(shape, connected, mix({seed, 9, next++}))));
      file.commit_unflushed();
    }
  flush_file_system(folder);
  write_file_atomically(done, "");
  return folders;
}

} // namespace hydrascope::training
