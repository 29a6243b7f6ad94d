// Arrangements of panels, which a session may have from a stranger.
#include "app/document/arrangement.h"

#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "app/document/commands.h"
#include "app/document/editor.h"
#include "app/document/session.h"
#include "app/document/session_edits.h"
#include "engine/base/paths.h"
#include "tests/app/fixture.h"

namespace hydrascope::app::tests {
namespace {

// As Dear ImGui writes it.
const std::string windows = R"([Window][input]
Pos=0,27
Size=291,149
Collapsed=0
DockId=0x00000005,0

[Window][###focus]
Pos=-5,27
Size=337,324
Collapsed=1
DockId=0x00000006

[Window][WindowOverViewport_11111111]
Pos=0,27
Size=960,547
Collapsed=0

)";
const std::string nodes = R"([Docking][Data]
DockSpace ID=0x0966DF3F Window=0x1BBC0F80 Pos=0,27 Size=960,547 Split=X
DockNode ID=0x00000001 Parent=0x0966DF3F SizeRef=291,600 Split=Y
DockNode ID=0x00000005 Parent=0x00000001 SizeRef=291,163 CentralNode=1 Selected=0x74D82813
DockNode ID=0x00000006 Parent=0x00000001 SizeRef=291,433 NoTabBar=1
DockNode ID=0x00000002 Parent=0x0966DF3F SizeRef=665,600
DockNode ID=0x00000100 Pos=10,10 Size=300,300

)";

TEST(SoundArrangement, KeepsWhatDearImGuiWrites) {
  EXPECT_EQ(sound_arrangement(windows + nodes), windows + nodes);
  EXPECT_EQ(sound_arrangement(""), "");
  std::string other = windows; // of another version, with another end of lines
  other.insert(other.find("Collapsed"), "LastUsed=20261129\nViewportPos=1,2\nClassId=0x00000001\n");
  std::string indented = nodes;
  indented.insert(indented.find("DockNode"), "    ");
  indented.replace(indented.find(" ID"), 1, "     ");
  std::string text = "; a remark\n[Table][0x12345678,2147483647]\nColumn 0  Width=5\n" + other + indented;
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 2))
    text.insert(at, "\r");
  EXPECT_EQ(sound_arrangement(text), windows + nodes);
}

TEST(SoundArrangement, LeavesWindowsUndockedWhoseNodeIsNotThere) {
  std::string text = windows, expected = windows;
  text.replace(text.find("0x00000005"), 10, "0x00000077");
  expected.erase(expected.find("DockId=0x00000005,0\n"), 20);
  EXPECT_EQ(sound_arrangement(text + nodes), expected + nodes);
  text.replace(text.find("0x00000077"), 10, "0x00000001"); // it is split
  EXPECT_EQ(sound_arrangement(text + nodes), expected + nodes);
  expected.erase(expected.find("DockId=0x00000006\n"), 18);
  EXPECT_EQ(sound_arrangement(windows), expected);
  std::string size = expected; // beyond 16 bits
  size.replace(size.find("Size=291,149\n"), 13, "Size=99999,149\n");
  expected.erase(expected.find("Size=291,149\n"), 13);
  EXPECT_EQ(sound_arrangement(size), expected);
}

// Each made Dear ImGui hang or end the program.
TEST(SoundArrangement, IsNoneWhereTheNodesAreNoTree) {
  const std::string
      begin = "[Docking][Data]\n",
      root = "DockSpace ID=0x00000001 Pos=0,0 Size=100,100 Split=X\n",
      two = "DockNode ID=0x00000002 Parent=0x00000001\nDockNode ID=0x00000003 Parent=0x00000001\n";
  ASSERT_TRUE(sound_arrangement(begin + root + two));
  std::string deep = begin + root;
  constexpr int last = 599; // the first child of each node has children
  for (int i = 1; i < last; i += 2)
    deep += fmt::format("DockNode ID=0x{1:08X} Parent=0x{0:08X}{3}\nDockNode ID=0x{2:08X} Parent=0x{0:08X}\n",
                        i, i + 2, i + 1, i + 2 < last ? " Split=X" : "");
  std::string many;
  for (int i = 0; i < 501; ++i) many += fmt::format("[Window][w{}]\nCollapsed=0\n\n", i);
  const std::vector<std::string> bad = {
      begin + root + two + "DockNode ID=0x00000004 Parent=0x00000004\n", // its own parent
      begin + "DockNode ID=0x00000004 Parent=0x00000005\n",              // of a parent that is not there
      begin + root,                                                      // without children
      begin + root + two.substr(0, two.find('\n') + 1),                  // with one
      begin + root + two + "DockNode ID=0x00000004 Parent=0x00000001\n", // with three
      begin + root + two + "DockNode ID=0x00000004 Parent=0x00000002\n", // of a node that is not split
      begin + root + two + "DockNode ID=0x00000003 Pos=0,0 Size=1,1\n",  // there twice
      begin + root + two + "DockNode ID=0x00000004\n",                   // without a place
      begin + root + two + "DockNode ID=0x00000000 Pos=0,0 Size=1,1\n",
      begin + root + "DockSpace ID=0x00000002 Parent=0x00000001\n" + two.substr(two.find('\n') + 1),
      begin + "nonsense\n",
      begin + "DockNode 5\n",
      std::string("[Window][a\x01]\n"),
      deep,
      many};
  for (const std::string& text : bad) EXPECT_FALSE(sound_arrangement(text)) << text.substr(0, 300);
}

TEST(SoundArrangement, IsWhatASessionRestores) {
  const ScratchFolder scratch;
  const std::filesystem::path file = scratch / "session.json";
  const auto restored = [&](const std::string& arrangement) {
    Editor editor;
    editor.set_initial(small_document());
    FileHashes hashes;
    Session session;
    session.document = small_document();
    session.arrangement = arrangement;
    write_file_atomically(file, session_text(session, file.parent_path(), hashes));
    EXPECT_TRUE(open_session(editor, file));
    std::string text = editor.messages().empty() ? "" : editor.messages().back().text;
    for (const Command& command : editor.take_commands())
      if (const auto* restore = std::get_if<RestoreArrangement>(&command)) text = restore->arrangement;
    return text;
  };
  EXPECT_EQ(restored("[Table][0x12345678,2]\n" + windows + nodes), windows + nodes);
  EXPECT_EQ(restored(""), "");
  EXPECT_EQ(restored("[Docking][Data]\nDockNode ID=0x00000001 Parent=0x00000001\n"),
            "session.json: the arrangement of its panels is damaged and was left out");
}

} // namespace
} // namespace hydrascope::app::tests
