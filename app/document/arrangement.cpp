#include "app/document/arrangement.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/base/text.h"

namespace hydrascope::app {

namespace {

using Id = std::uint32_t;
struct Point {
  int x = 0, y = 0;
};

constexpr std::string_view window_begin = "[Window][", docking_begin = "[Docking][Data]";

std::optional<int> number_in(const std::string_view text) {
  int number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  // Dear ImGui keeps 16 bits.
  const bool fits = number >= std::numeric_limits<std::int16_t>::min() &&
                    number <= std::numeric_limits<std::int16_t>::max();
  if (failure != std::errc() || end != text.data() + text.size() || !fits) return std::nullopt;
  return number;
}

std::optional<Point> pair_in(const std::string_view text) {
  const std::vector<std::string_view> parts = split(text, ',');
  if (parts.size() != 2) return std::nullopt;
  const auto x = number_in(parts[0]), y = number_in(parts[1]);
  return x && y ? std::optional(Point{*x, *y}) : std::nullopt;
}

// 0x0000000A; 0 if it is none.
Id id_in(std::string_view text) {
  constexpr std::size_t most_digits = 8;
  constexpr int base = 16;
  if (!text.starts_with("0x")) return 0;
  text.remove_prefix(2);
  Id id = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), id, base);
  return failure != std::errc() || end != text.data() + text.size() || text.size() > most_digits ? 0 : id;
}

struct PlacedWindow {
  std::string name;
  bool child = false, collapsed = false;
  std::optional<Point> position, size;
  Id node = 0; // where it is docked
  std::optional<int> order;
};

struct DockedNode {
  Id id = 0, parent = 0, window = 0, selected = 0;
  bool space = false;
  std::optional<Point> position, size, reference;
  char split = '\0'; // X, Y or none
  int children = 0;
  std::string flags;
};

// NAME=VALUE; an entry that cannot be read is left out.
void read_entry(PlacedWindow& window, const std::string_view line) {
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos) return;
  const std::string_view name = line.substr(0, equals), value = line.substr(equals + 1);
  if (name == "Pos") window.position = pair_in(value);
  if (name == "Size") window.size = pair_in(value);
  if (name == "Collapsed") window.collapsed = value != "0";
  if (name == "IsChild") window.child = value != "0";
  if (name != "DockId") return;
  const std::size_t comma = value.find(',');
  window.node = id_in(value.substr(0, comma));
  window.order = comma == std::string_view::npos ? std::nullopt : number_in(value.substr(comma + 1));
}

// DockNode ID=0x00000005 Parent=0x00000001 SizeRef=291,163 Selected=0x74D82813
std::optional<DockedNode> node_in(const std::string_view line) {
  static constexpr std::array<std::string_view, 6> flags{
      "NoResize", "CentralNode", "NoTabBar", "HiddenTabBar", "NoWindowMenuButton", "NoCloseButton"};
  DockedNode node;
  bool named = false;
  for (const std::string_view word : split(line, ' ')) {
    if (word.empty()) continue;
    if (!std::exchange(named, true)) {
      if (word != "DockNode" && word != "DockSpace") return std::nullopt;
      node.space = word == "DockSpace";
      continue;
    }
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string_view name = word.substr(0, equals), value = word.substr(equals + 1);
    if (name == "ID") node.id = id_in(value);
    if (name == "Parent") node.parent = id_in(value);
    if (name == "Window") node.window = id_in(value);
    if (name == "Selected") node.selected = id_in(value);
    if (name == "Pos") node.position = pair_in(value);
    if (name == "Size") node.size = pair_in(value);
    if (name == "SizeRef") node.reference = pair_in(value);
    if (name == "Split" && (value == "X" || value == "Y")) node.split = value.front();
    if (std::ranges::find(flags, name) != flags.end() && value == "1")
      node.flags += fmt::format(" {}=1", name);
  }
  return node;
}

std::string text_of(const PlacedWindow& window) {
  std::string text = fmt::format("[Window][{}]\n", window.name);
  if (window.child) text += "IsChild=1\n";
  if (window.position) text += fmt::format("Pos={},{}\n", window.position->x, window.position->y);
  if (window.size) text += fmt::format("Size={},{}\n", window.size->x, window.size->y);
  text += fmt::format("Collapsed={:d}\n", window.collapsed);
  if (window.node != 0) {
    text += fmt::format("DockId=0x{:08X}", window.node);
    if (window.order) text += fmt::format(",{}", *window.order);
    text += "\n";
  }
  return text + "\n";
}

std::string text_of(const DockedNode& node) {
  std::string text = fmt::format("{} ID=0x{:08X}", node.space ? "DockSpace" : "DockNode", node.id);
  if (node.parent != 0) {
    text += fmt::format(" Parent=0x{:08X}", node.parent);
    if (node.reference) text += fmt::format(" SizeRef={},{}", node.reference->x, node.reference->y);
  } else {
    if (node.window != 0) text += fmt::format(" Window=0x{:08X}", node.window);
    text +=
        fmt::format(" Pos={},{} Size={},{}", node.position->x, node.position->y, node.size->x, node.size->y);
  }
  if (node.split != '\0') text += fmt::format(" Split={}", node.split);
  text += node.flags;
  if (node.selected != 0) text += fmt::format(" Selected=0x{:08X}", node.selected);
  return text + "\n";
}

// The nodes in the order of the text, each after its parent.
class NodeTree {
public:
  // Whether the node can be added.
  bool add(DockedNode node) {
    constexpr std::size_t most = 256; // Dear ImGui goes down from each to its children
    if (node.id == 0 || places_.contains(node.id) || nodes_.size() >= most) return false;
    if (node.parent == 0) {
      if (!node.position || !node.size) return false;
    } else {
      const auto parent = places_.find(node.parent);
      if (parent == places_.end() || node.space || nodes_[parent->second].split == '\0') return false;
      if (++nodes_[parent->second].children > 2) return false;
    }
    places_.emplace(node.id, nodes_.size());
    nodes_.push_back(std::move(node));
    return true;
  }
  // Whether each node has none or two children, once all are there.
  bool whole() const {
    return std::ranges::all_of(
        nodes_, [](const DockedNode& node) { return node.children == (node.split == '\0' ? 0 : 2); });
  }
  bool holds_windows(const Id id) const {
    const auto found = places_.find(id);
    return found != places_.end() && nodes_[found->second].split == '\0';
  }
  const std::vector<DockedNode>& nodes() const { return nodes_; }

private:
  std::vector<DockedNode> nodes_;
  std::map<Id, std::size_t> places_;
};

} // namespace

std::optional<std::string> sound_arrangement(const std::string_view text) {
  constexpr std::size_t most_bytes = std::size_t{256} << 10;
  constexpr std::size_t most_windows = 500; // Dear ImGui looks for each among all
  if (text.size() > most_bytes) return std::nullopt;
  std::vector<PlacedWindow> windows;
  NodeTree tree;
  enum class Section { window, docking, other } section = Section::other;
  for (std::string_view line : split(text, '\n')) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with('[')) {
      const bool window = line.starts_with(window_begin) && line.ends_with(']');
      section = window ? Section::window : line == docking_begin ? Section::docking : Section::other;
      if (!window) continue;
      const std::string_view name = line.substr(window_begin.size(), line.size() - window_begin.size() - 1);
      const bool printable =
          std::ranges::none_of(name, [](const char c) { return static_cast<unsigned char>(c) < ' '; });
      if (!printable || windows.size() == most_windows) return std::nullopt;
      windows.push_back({.name = std::string(name), .position = {}, .size = {}, .order = {}});
    } else if (section == Section::window) {
      read_entry(windows.back(), line);
    } else if (section == Section::docking && !trimmed(line).empty()) {
      auto node = node_in(line);
      if (!node || !tree.add(*std::move(node))) return std::nullopt;
    }
  }
  if (!tree.whole()) return std::nullopt;
  std::string sound;
  for (PlacedWindow& window : windows) {
    if (!tree.holds_windows(window.node)) window.node = 0;
    sound += text_of(window);
  }
  if (tree.nodes().empty()) return sound;
  sound += fmt::format("{}\n", docking_begin);
  for (const DockedNode& node : tree.nodes()) sound += text_of(node);
  return sound + "\n";
}

} // namespace hydrascope::app
