#include "app/panels/panel.h"

#include "engine/run/quantities/head_quantity.h"

// The panels in the order of the View menu, one line each. Those of the quantities per head come between the
// lists.
#define HYDRASCOPE_FIRST_PANELS(PANEL) \
  PANEL(make_input_panel)              \
  PANEL(make_kernels_panel)            \
  PANEL(make_focus_panel)              \
  PANEL(make_own_kernel_panel)         \
  PANEL(make_layers_panel)             \
  PANEL(make_predictions_panel)        \
  PANEL(make_loss_panel)               \
  PANEL(make_write_panel)              \
  PANEL(make_weights_panel)            \
  PANEL(make_tokens_panel)             \
  PANEL(make_vectors_panel)            \
  PANEL(make_values_panel)
#define HYDRASCOPE_LAST_PANELS(PANEL) \
  PANEL(make_hidden_norms_panel)      \
  PANEL(make_similar_heads_panel)     \
  PANEL(make_deletion_panel)          \
  PANEL(make_folder_panel)            \
  PANEL(make_timing_panel)            \
  PANEL(make_scaling_panel)           \
  PANEL(make_roofline_panel)          \
  PANEL(make_training_panel)

namespace hydrascope::app {

#define HYDRASCOPE_DECLARE(function) std::unique_ptr<Panel> function(PanelServices services);
HYDRASCOPE_FIRST_PANELS(HYDRASCOPE_DECLARE)
HYDRASCOPE_LAST_PANELS(HYDRASCOPE_DECLARE)
#undef HYDRASCOPE_DECLARE
std::unique_ptr<Panel> make_monotonicity_panel(PanelServices services);
// `quantity` must outlive the panel.
std::unique_ptr<Panel> make_head_table_panel(const HeadQuantityInfo& quantity, PanelServices services);

std::vector<std::unique_ptr<Panel>> make_panels(PanelServices services) {
  std::vector<std::unique_ptr<Panel>> panels;
#define HYDRASCOPE_ENTRY(function) panels.push_back(function(services));
  HYDRASCOPE_FIRST_PANELS(HYDRASCOPE_ENTRY)
  for (const HeadQuantityInfo& quantity : head_quantity_infos())
    panels.push_back(quantity.name == "monotonicity"
                         ? make_monotonicity_panel(services) // with a scatter plot
                         : make_head_table_panel(quantity, services));
  HYDRASCOPE_LAST_PANELS(HYDRASCOPE_ENTRY)
#undef HYDRASCOPE_ENTRY
  return panels;
}

} // namespace hydrascope::app
