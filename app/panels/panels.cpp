#include "app/panels/panels.h"

namespace hydrascope::app {

std::vector<std::unique_ptr<Panel>> make_panels(PanelServices services) {
  std::vector<std::unique_ptr<Panel>> panels;
  panels.push_back(make_input_panel(services));
  panels.push_back(make_kernels_panel(services));
  panels.push_back(make_focus_panel(services));
  panels.push_back(make_layers_panel(services));
  panels.push_back(make_predictions_panel(services));
  panels.push_back(make_weights_panel(services));
  panels.push_back(make_tokens_panel(services));
  panels.push_back(make_vectors_panel(services));
  panels.push_back(make_values_panel(services));
  for (const HeadQuantityInfo& quantity : head_quantity_infos())
    panels.push_back(quantity.name == "monotonicity" ? make_monotonicity_panel(services) // with a scatter
                                                     : make_head_table_panel(quantity, services));
  panels.push_back(make_similar_heads_panel(services));
  panels.push_back(make_deletion_panel(services));
  panels.push_back(make_folder_panel(services));
  panels.push_back(make_timing_panel(services));
  panels.push_back(make_scaling_panel(services));
  panels.push_back(make_roofline_panel(services));
  panels.push_back(make_training_panel(services));
  return panels;
}

} // namespace hydrascope::app
