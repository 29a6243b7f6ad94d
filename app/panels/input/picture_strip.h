// Thumbnails in a row: the examples, or the pictures of the folder that is open.
#pragma once

#include <filesystem>
#include <vector>

#include "app/panels/input/thumbnails.h"
#include "app/panels/panel.h"

namespace hydrascope::app {

class PictureStrip {
public:
  explicit PictureStrip(PanelServices services);
  // The room that draw() takes below the cursor.
  float height() const;
  void draw();

private:
  void draw_folder_line(const PictureFolder& folder);
  void draw_pictures(const PictureFolder& folder);
  void draw_picture(const PictureFolder& folder, std::size_t index, float side, bool chosen);
  void draw_examples();
  // Draws one and returns whether it was clicked.
  bool draw_thumbnail(const std::filesystem::path& file, const char* id, float side);

  Editor& editor() const { return *services_.editor; }
  Graphics& graphics() const { return *services_.graphics; }

  PanelServices services_;
  Thumbnails thumbnails_;
  std::vector<std::filesystem::path> examples_;
  std::filesystem::path scrolled_to_; // the picture that the strip was last scrolled to
};

} // namespace hydrascope::app
