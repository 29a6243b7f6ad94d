// A folder of figures with everything that belongs to them: each as SVG, PDF, PNG and CSV, the session, and a
// page that shows them all offline.
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
  std::string id, title; // the files' name, the heading
  Figure figure;
};

struct ExportFolder {
  std::string title;                 // of the page
  std::vector<std::string> facts;    // below it: model, kernels, input
  std::vector<ExportedPanel> panels; // in their order
  std::vector<std::string> empty;    // titles of open panels that show nothing
  Session session;
};

// An export of what is open, without panels yet; `arrangement` as Dear ImGui writes it.
ExportFolder new_export(const Editor& editor, std::string arrangement);
// A panel's figure with where it comes from: model, kernels and input of the results, and the session that
// shows it.
Figure with_session(Figure figure, const std::string& panel, const Editor& editor, const SideResults& results,
                    FileHashes& hashes);

// index.html: no script, nothing from the network, light or dark as the browser asks.
std::string export_page(const ExportFolder& content);

// Throws Error if there is a folder that is not empty.
void check_export_folder(const std::filesystem::path& folder);
// Writes a folder beside and renames it. Throws Error if there is one that is not empty, or it cannot be
// written; Cancelled when `stop` is requested.
void write_export_folder(const ExportFolder& content, const std::filesystem::path& folder,
                         const FigureStyle& style = {}, const std::stop_token& stop = {});

// `folder` itself as long as nothing is in it, else a new name inside it.
std::filesystem::path free_export_folder(const std::filesystem::path& folder, const std::string& name);

} // namespace hydrascope::app
