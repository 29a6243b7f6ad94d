#include "app/panels/input/thumbnails.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace hydrascope::app {

namespace {

// Beyond these the ones that have not been seen for longest are forgotten.
constexpr std::size_t most_known = 600;

std::size_t rgb_index(const Image& image, int x, int y, int channel) {
  const auto row = static_cast<std::size_t>(y) * static_cast<std::size_t>(image.width);
  return (row + static_cast<std::size_t>(x)) * 3 + static_cast<std::size_t>(channel);
}

} // namespace

Image thumbnail_of(const Image& whole, int side) {
  const int crop = std::min(whole.width, whole.height);
  const int left = (whole.width - crop) / 2, top = (whole.height - crop) / 2;
  Image small{side, side,
              std::vector<std::uint8_t>(static_cast<std::size_t>(side) * static_cast<std::size_t>(side) * 3)};
  const auto part = [&](int i) { return static_cast<int>(std::int64_t{i} * crop / side); };
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      const int x0 = left + part(x), x1 = std::max(x0 + 1, left + part(x + 1));
      const int y0 = top + part(y), y1 = std::max(y0 + 1, top + part(y + 1));
      for (int channel = 0; channel < 3; ++channel) {
        std::int64_t sum = 0;
        for (int row = y0; row < y1; ++row) {
          for (int column = x0; column < x1; ++column) {
            sum += whole.rgb[rgb_index(whole, column, row, channel)];
          }
        }
        small.rgb[rgb_index(small, x, y, channel)] =
            static_cast<std::uint8_t>(sum / (std::int64_t{x1 - x0} * (y1 - y0)));
      }
    }
  }
  return small;
}

class Thumbnails::Maker {
public:
  struct Made {
    std::filesystem::path file;
    std::shared_ptr<const Image> picture;
    std::string problem;
  };

  explicit Maker(int side) : side_(side) {
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
  void ask(const std::filesystem::path& file) {
    {
      const std::scoped_lock lock(mutex_);
      wanted_.push_back(file);
      ++open_;
    }
    arrived_.notify_one();
  }
  std::vector<Made> take() {
    const std::scoped_lock lock(mutex_);
    open_ -= made_.size();
    return std::exchange(made_, {});
  }
  bool busy() const {
    const std::scoped_lock lock(mutex_);
    return open_ > 0;
  }

private:
  void run(const std::stop_token& stop) {
    while (true) {
      Made made;
      {
        std::unique_lock lock(mutex_);
        if (!arrived_.wait(lock, stop, [this] { return !wanted_.empty(); })) return;
        made.file = std::move(wanted_.back()); // what has been scrolled past can wait
        wanted_.pop_back();
      }
      try {
        made.picture = std::make_shared<const Image>(thumbnail_of(load_image(made.file), side_));
      } catch (const std::exception& error) {
        made.problem = error.what();
      }
      const std::scoped_lock lock(mutex_);
      made_.push_back(std::move(made));
    }
  }

  int side_;
  mutable std::mutex mutex_; // of what follows
  std::condition_variable_any arrived_;
  std::vector<std::filesystem::path> wanted_;
  std::vector<Made> made_;
  std::size_t open_ = 0; // asked for and not taken
  std::jthread thread_;  // last: joined before what it uses goes
};

Thumbnails::Thumbnails(int side) : maker_(std::make_unique<Maker>(side)) {}
Thumbnails::~Thumbnails() = default;

Thumbnails::Thumbnail& Thumbnails::get(const std::filesystem::path& file) {
  const auto [entry, fresh] = known_.try_emplace(file);
  if (fresh) maker_->ask(file);
  entry->second.wanted = frame_;
  return entry->second;
}

bool Thumbnails::collect() {
  ++frame_;
  for (Maker::Made& made : maker_->take()) {
    Thumbnail& thumbnail = known_[made.file];
    thumbnail.picture.set(std::move(made.picture));
    thumbnail.problem = std::move(made.problem);
  }
  if (known_.size() > most_known && !maker_->busy()) {
    std::vector<std::uint64_t> ages;
    for (const auto& [file, thumbnail] : known_) ages.push_back(thumbnail.wanted);
    const auto middle = ages.begin() + static_cast<std::ptrdiff_t>(ages.size() / 2);
    std::ranges::nth_element(ages, middle);
    const std::uint64_t oldest = *middle;
    std::erase_if(known_, [&](const auto& entry) { return entry.second.wanted < oldest; });
  }
  return maker_->busy();
}

} // namespace hydrascope::app
