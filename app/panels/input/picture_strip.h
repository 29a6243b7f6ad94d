// Thumbnails in a row: the examples, or the pictures of the open folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "app/jobs/background_job.h"
#include "app/panels/panel.h"
#include "engine/base/image.h"

namespace hydrascope::app {

// Square thumbnails, made in the background.
class Thumbnails {
public:
  struct Thumbnail {
    std::shared_ptr<const Image> picture; // null until it has been made
    std::string problem;                  // why it could not be made
    std::uint64_t used_at = 0;            // frame of the last get()
  };
  // Requests the thumbnail if it is not known yet. The newest requests are made first.
  Thumbnail& get(const std::filesystem::path& file);
  // Once per frame: takes what has been made and starts on what is missing. Returns whether more is to come.
  bool collect();

private:
  struct Made {
    std::filesystem::path file;
    std::shared_ptr<const Image> picture;
    std::string problem;
  };
  void start();
  void forget_oldest();

  std::map<std::filesystem::path, Thumbnail> known_;
  std::vector<std::filesystem::path> missing_; // in the order of their requests
  JobSlot<Made> job_;
  std::uint64_t frame_ = 0;
};

class PictureStrip {
public:
  explicit PictureStrip(PanelServices services);
  // The height that draw() takes.
  float height() const;
  void draw();

private:
  float side_of_examples() const;
  void draw_folder_line(const PictureFolder& folder);
  void draw_pictures(const PictureFolder& folder);
  void draw_picture(const PictureFolder& folder, std::size_t index, float side, bool chosen);
  void draw_examples();
  // Returns whether it was clicked.
  bool draw_thumbnail(const std::filesystem::path& file, const char* id, float side);

  Editor& editor() const { return *services_.editor; }
  Graphics& graphics() const { return *services_.graphics; }

  PanelServices services_;
  Thumbnails thumbnails_;
  std::vector<std::filesystem::path> examples_;
  std::filesystem::path scrolled_to_; // the picture that the strip was last scrolled to
};

} // namespace hydrascope::app
