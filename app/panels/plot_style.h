// The look of plots, for the plots begun during its life.
#pragma once

namespace hydrascope::app {

class PlotStyle {
public:
  PlotStyle();
  ~PlotStyle();
  PlotStyle(const PlotStyle&) = delete;
  PlotStyle& operator=(const PlotStyle&) = delete;

private:
  int colours_ = 0;
};

} // namespace hydrascope::app
