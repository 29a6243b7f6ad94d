// The one list of panels, in the order of the View menu.
#pragma once

#include <memory>
#include <vector>

#include "app/panels/panel.h"
#include "engine/run/quantities/head_quantity.h"

namespace hydrascope::app {

std::unique_ptr<Panel> make_input_panel(PanelServices services);
std::unique_ptr<Panel> make_kernels_panel(PanelServices services);
std::unique_ptr<Panel> make_focus_panel(PanelServices services);
std::unique_ptr<Panel> make_layers_panel(PanelServices services);
std::unique_ptr<Panel> make_predictions_panel(PanelServices services);
std::unique_ptr<Panel> make_weights_panel(PanelServices services);
std::unique_ptr<Panel> make_tokens_panel(PanelServices services);
std::unique_ptr<Panel> make_values_panel(PanelServices services);
std::unique_ptr<Panel> make_vectors_panel(PanelServices services);
// Of any quantity; it is named after the quantity, whose info outlives it.
std::unique_ptr<Panel> make_head_table_panel(const HeadQuantityInfo& quantity, PanelServices services);
std::unique_ptr<Panel> make_monotonicity_panel(PanelServices services);
std::unique_ptr<Panel> make_similar_heads_panel(PanelServices services);
std::unique_ptr<Panel> make_deletion_panel(PanelServices services);
std::unique_ptr<Panel> make_folder_panel(PanelServices services);
std::unique_ptr<Panel> make_timing_panel(PanelServices services);
std::unique_ptr<Panel> make_scaling_panel(PanelServices services);
std::unique_ptr<Panel> make_roofline_panel(PanelServices services);
std::unique_ptr<Panel> make_training_panel(PanelServices services);

std::vector<std::unique_ptr<Panel>> make_panels(PanelServices services);

} // namespace hydrascope::app
