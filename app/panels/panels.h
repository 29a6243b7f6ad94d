// The one list of panels, in the order of the View menu.
#pragma once

#include <memory>
#include <vector>

#include "app/panels/panel.h"

namespace hydrascope::app {

std::vector<std::unique_ptr<Panel>> make_panels(PanelServices services);

} // namespace hydrascope::app
