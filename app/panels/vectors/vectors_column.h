// One schedule's vectors in the Vectors panel, or what lies between the two.
#pragma once

#include <memory>
#include <optional>

#include "app/panels/heat_map_view.h"
#include "app/panels/panel.h"
#include "app/views/vectors_view.h"
#include "engine/run/quantities/vectors.h"

namespace hydrascope::app {

// What the panel asks of a run for the schedule that the document shows.
VectorsKey vectors_key(const Document& document);

class VectorsColumn {
public:
  explicit VectorsColumn(PanelServices services) : services_(services) {}

  void prepare(const Snapshot& snapshot);
  void subtract(const VectorsColumn& a, const VectorsColumn& b);

  bool empty() const { return vectors_ == nullptr; }
  void draw(float brightness);
  Figure figure() const;

private:
  Editor& editor() const { return *services_.editor; }
  Graphics& graphics() const { return *services_.graphics; }
  const Document& document() const { return services_.editor->document(); }

  std::int64_t tokens() const;
  std::int64_t key_token() const;
  VectorsView view_of(std::int64_t key) const;
  void set_feature(std::optional<int> feature);
  void draw_pair(std::int64_t key);
  void draw_notes();
  ImVec4 strip_colour(std::size_t index) const;
  void draw_strips();
  void hover(const FeatureStrip& strip, int feature);
  void draw_feature(ImVec2 from, ImVec2 size);
  void draw_map(const char* id, HeatMapView& view, const char* caption, ImVec2 from, ImVec2 size,
                bool by_token);

  PanelServices services_;
  std::shared_ptr<const RunResult> run_;
  std::shared_ptr<const VectorsResult> vectors_; // of a difference: A's …
  std::shared_ptr<const VectorsResult> other_;   // … and B's; else null
  VectorsView view_;
  std::optional<std::int64_t> shown_key_; // that view_ was made for
  std::optional<int> feature_;            // looked into, of a Hydra kernel
  std::optional<int> hovered_feature_, next_hovered_feature_;
  HeatMapView filling_, rank_one_;
  float brightness_ = 1;
};

} // namespace hydrascope::app
