// Tables on standard output, as several commands print them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hydrascope::app {

// Prints rows of as many cells each as the first, columns two blanks apart. `alignment` has a letter for each
// column from the first, 'l' or 'r'; columns beyond it are set left.
void print_table(const std::vector<std::vector<std::string>>& rows, std::string_view alignment = {});

} // namespace hydrascope::app
