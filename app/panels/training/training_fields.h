// The fields of the Training panel's form, made from the option table.
#pragma once

#include <array>
#include <string>

#include "app/document/editor.h"
#include "app/ui/graphics.h"

namespace hydrascope::app {

// A heading for each group of options. Those that are rarely changed are folded away below a button.
class TrainingFields {
public:
  // `default_output`: the file that is written if the user names none.
  void draw(Editor& editor, const Graphics& graphics, const std::string& default_output);

private:
  bool heading(const Editor& editor, const Graphics& graphics, OptionGroup group);

  std::array<bool, 4> unfolded_{}; // by OptionGroup
};

} // namespace hydrascope::app
