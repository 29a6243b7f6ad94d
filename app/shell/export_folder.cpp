#include "app/shell/export_folder.h"

#include <array>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "app/document/session_edits.h"
#include "app/views/provenance.h"
#include "engine/base/error.h"
#include "engine/base/json_text.h"
#include "engine/base/paths.h"
#include "engine/base/temporary.h"

namespace hydrascope::app {

namespace {

std::vector<std::string> facts_of(const Document& document) {
  const Scene& scene = document.scene();
  std::vector<std::string> facts;
  if (scene.input) facts.push_back("Input: " + input_name(*scene.input));
  if (scene.model) facts.push_back("Model: " + scene.model->name);
  facts.push_back("A: " + scene.schedules[0].summary());
  if (document.view.shown != Shown::a) facts.push_back("B: " + scene.schedules[1].summary());
  return facts;
}

namespace fs = std::filesystem;

constexpr std::array<const char*, 4> endings = {"svg", "pdf", "png", "csv"};

std::string escaped(std::string_view text) {
  std::string result;
  for (const char character : text) {
    switch (character) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      default: result += character;
    }
  }
  return result;
}

constexpr std::string_view page_head = R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{0}</title>
<style>
:root {{ color-scheme: light dark; --ground: #f6f6f7; --card: #ffffff; --text: #1b1c1f; --quiet: #5c6068;
        --line: #d9dbe0; --accent: #1f5fbf; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --ground: #141517; --card: #1d1f22; --text: #e8e9eb; --quiet: #9aa0a8; --line: #33363b;
          --accent: #7fb0ff; }}
}}
body {{ margin: 0 auto; max-width: 1100px; padding: 32px 24px; background: var(--ground); color: var(--text);
       font: 15px/1.5 Inter, system-ui, sans-serif; }}
h1 {{ font-size: 24px; margin: 0 0 8px; }}
h2 {{ font-size: 17px; margin: 0 0 12px; }}
p {{ margin: 0 0 4px; color: var(--quiet); }}
a {{ color: var(--accent); }}
nav {{ margin: 16px 0 24px; display: flex; flex-wrap: wrap; gap: 4px 16px; }}
section {{ background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: 16px;
          margin: 0 0 24px; }}
img {{ display: block; width: 100%; height: auto; background: #ffffff; border-radius: 3px; }}
.files {{ display: flex; gap: 16px; margin: 12px 0 0; }}
details {{ margin: 8px 0 0; color: var(--quiet); }}
pre {{ overflow-x: auto; font: 12px/1.45 "JetBrains Mono", monospace; }}
</style>
</head>
<body>
<h1>{0}</h1>
)";

// Indents JSON; other text is unchanged.
std::string readable(const std::string& provenance) {
  const auto json = nlohmann::ordered_json::parse(provenance, nullptr, false);
  if (json.is_discarded()) return provenance;
  return text_of_json(json, 2);
}

std::string section_of(const ExportedPanel& panel) {
  std::string html = fmt::format(
      "<section id=\"{0}\">\n<h2>{1}</h2>\n"
      "<img src=\"{0}.svg\" alt=\"{1}: {2}\">\n<div class=\"files\">",
      escaped(panel.id), escaped(panel.title), escaped(panel.figure.title));
  for (const char* ending : endings) {
    std::string name = ending;
    for (char& letter : name) letter = static_cast<char>(letter - 'a' + 'A');
    html += fmt::format("<a href=\"{}.{}\">{}</a>", escaped(panel.id), ending,
                        name == "CSV" ? "numbers (CSV)" : name);
  }
  html += "</div>\n";
  if (!panel.figure.provenance.empty())
    html += fmt::format("<details><summary>Where this comes from</summary><pre>{}</pre></details>\n",
                        escaped(readable(panel.figure.provenance)));
  return html + "</section>\n";
}

bool holds_something(const fs::path& folder) {
  std::error_code none;
  return fs::exists(folder, none) && !(fs::is_directory(folder, none) && fs::is_empty(folder, none));
}

} // namespace

std::string export_page(const ExportFolder& content) {
  std::string html = fmt::format(fmt::runtime(page_head), escaped(content.title));
  for (const std::string& fact : content.facts) html += fmt::format("<p>{}</p>\n", escaped(fact));
  html += "<nav>\n";
  for (const ExportedPanel& panel : content.panels)
    html += fmt::format("<a href=\"#{}\">{}</a>\n", escaped(panel.id), escaped(panel.title));
  html += "</nav>\n";
  for (const ExportedPanel& panel : content.panels) html += section_of(panel);
  if (!content.empty.empty())
    html += fmt::format("<p>Open, but showing nothing: {}.</p>\n",
                        escaped(fmt::format("{}", fmt::join(content.empty, ", "))));
  html += fmt::format(
      "<p>Made by Hydrascope {}. <a href=\"session.json\">session.json</a> opens all of this in it again: "
      "hydrascope session.json</p>\n</body>\n</html>\n",
      escaped(program_version()));
  return html;
}

void check_export_folder(const fs::path& folder) {
  if (holds_something(folder))
    throw Error(folder.string(), "is there already, and not empty", "name a new folder");
}

void write_export_folder(const ExportFolder& content, const fs::path& folder, const FigureStyle& style,
                         const std::stop_token& stop) {
  check_export_folder(folder);
  const fs::path target = fs::absolute(folder).lexically_normal();
  TemporaryFolder temporary(target.has_filename() ? target : target.parent_path());
  for (const ExportedPanel& panel : content.panels) {
    for (const char* ending : endings)
      write_figure(panel.figure, temporary.path() / (panel.id + "." + ending), style, stop);
  }
  FileHashes hashes;
  write_file_atomically(temporary.path() / "session.json", session_text(content.session, target, hashes));
  write_file_atomically(temporary.path() / "index.html", export_page(content));
  if (stop.stop_requested()) throw Cancelled();
  temporary.commit();
}

fs::path free_export_folder(const fs::path& folder, const std::string& name) {
  if (!holds_something(folder)) return folder;
  fs::path free = folder / name;
  for (int number = 2; holds_something(free); ++number) free = folder / fmt::format("{}-{}", name, number);
  return free;
}

ExportFolder new_export(const Editor& editor, std::string arrangement) {
  const std::filesystem::path& file = editor.session().file;
  ExportFolder content;
  content.title = file.empty() ? "Hydrascope figures" : file.stem().string();
  content.facts = facts_of(editor.document());
  content.session = present_session(editor, std::move(arrangement));
  content.session.file.clear();
  content.session.changed = false;
  return content;
}

Figure with_session(Figure figure, const std::string& panel, const Editor& editor, const SideResults& results,
                    FileHashes& hashes) {
  const Document& document = editor.document();
  // Of the parts of a result one that knows the target, if any does: which came last depends on the panels
  // that are in front.
  const RunResult* run = results.any();
  for (const auto& part : results.parts)
    if (!part->target.empty()) run = part.get();
  Session session = present_session(editor, {});
  if (panel != "write" && !document.writing.follow) session.writing = {}; // it shows nothing of it
  // Without a hash if the picture's file is gone: what it showed is still on the screen.
  const auto hash_of_file = [&](const fs::path& file) { return hashes.of(file); };
  if (run != nullptr && document.scene().input)
    figure.provenance = with_view(
        provenance_json(*run, *document.scene().input, document.execution, "hydrascope", hash_of_file), panel,
        compact_session_text(session, hashes));
  return figure;
}

} // namespace hydrascope::app
