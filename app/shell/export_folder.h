// A folder with figures as SVG, PDF, PNG and CSV, their session, and an HTML page that shows them offline.
#pragma once

#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "app/document/editor.h"
#include "app/document/session.h"
#include "app/jobs/results.h"
#include "engine/figures/figure.h"

namespace hydrascope::app {

struct ExportedPanel {
  std::string id, title; // name of the files, heading
  Figure figure;
};

struct ExportFolder {
  std::string title;              // of the page
  std::vector<std::string> facts; // lines below the title: model, kernels, input
  std::vector<ExportedPanel> panels;
  std::vector<std::string> empty; // titles of open panels without a figure
  Session session;
};

// An export of what is open, without panels yet; `arrangement` as Dear ImGui writes it.
ExportFolder new_export(const Editor& editor, std::string arrangement);
// A panel's figure with where it comes from: model, kernels and input of the results, and the session that
// shows it.
Figure with_session(Figure figure, const std::string& panel, const Editor& editor, const SideResults& results,
                    FileHashes& hashes);

// The text of index.html: without scripts and network access, light or dark as the browser prefers.
std::string export_page(const ExportFolder& content);

// Throws Error if the folder exists and is not empty.
void check_export_folder(const std::filesystem::path& folder);
// Writes a temporary folder and renames it. Throws Error if `folder` exists and is not empty or cannot be
// written, Cancelled on `stop`.
void write_export_folder(const ExportFolder& content, const std::filesystem::path& folder,
                         const FigureStyle& style = {}, const std::stop_token& stop = {});

// `folder` itself if it is empty, else an unused name inside it.
std::filesystem::path free_export_folder(const std::filesystem::path& folder, const std::string& name);

} // namespace hydrascope::app
