// What the Focus panel shows of one input: which query, and attention and rollout beside contributions.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/document/edits.h"
#include "app/document/session.h"
#include "app/panels/choices.h"
#include "app/ui/widgets.h"
#include "engine/run/quantities/attention_row.h"
#include "engine/run/quantities/focus_map.h"
#include "engine/run/quantities/rollout.h"
#include "tests/support/checkout.h"
#include "tests/window/harness.h"
#include "tests/window/screenshot.h"

namespace hydrascope::app::window_tests {

namespace {

const char* const cat_sentence = "The cat sat on the mat because it was tired.";

void begin(ImGuiTestContext* context, bool text) {
  start_over(context);
  if (text) open_text(editor(), cat_sentence);
  context->WindowFocus("//###focus");
  context->SetRef("//###focus");
  settle(context);
}

void choose_query(ImGuiTestContext* context, const char* entry) {
  context->ItemClick("##query");
  context->ItemClick(fmt::format("//$FOCUSED/{}", entry).c_str());
  context->KeyPress(ImGuiKey_Escape, 0); // nothing is left open
  settle(context);
}

std::string json_query() {
  const auto json = document_json(document());
  return json.at("scenes").at(document().kind == InputKind::image ? "image" : "text").at("query").dump();
}

const RunResult& shown_run() { return *find(results(), FocusKey{document().scene().layer}).run; }

void register_query_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "focus", "query_of_a_photograph")->TestFunc = [](ImGuiTestContext* context) {
    begin(context, false);
    select_layer(editor(), 5); // in the last one no patch influences a head that reads the class token
    settle(context);
    choose_query(context, "class token");
    IM_CHECK_STR_EQ(json_query().c_str(), "0");
    IM_CHECK_STR_EQ(query_name(shown_run()).c_str(), "class token");
    choose_query(context, "all tokens");
    IM_CHECK_STR_EQ(json_query().c_str(), "\"all\"");
    IM_CHECK(!shown_run().query.has_value());
    choose_query(context, "default");
    IM_CHECK_STR_EQ(json_query().c_str(), "\"default\"");

    context->ItemClick("##query");
    const ImGuiTestItemInfo distillation = context->ItemInfo("//$FOCUSED/distillation token");
    IM_CHECK(distillation.ID != 0);
    IM_CHECK((distillation.ItemFlags & ImGuiItemFlags_Disabled) != 0); // this model has none
    const RunResult& run = shown_run();
    const int rows = run.rows, columns = run.columns, prefix = run.prefix_tokens;
    context->ItemClick("//$FOCUSED/patch …");
    context->Yield(2);
    const int middle = prefix + rows / 2 * columns + columns / 2;
    IM_CHECK(document().scene().query == middle);
    context->ItemClick("//$FOCUSED/row/+");
    context->ItemClick("//$FOCUSED/column/-");
    context->Yield(2);
    IM_CHECK(document().scene().query == middle + columns - 1);
    context->KeyPress(ImGuiKey_Escape, 0);
    settle(context);
    const Figure figure = application().figure_of("focus").value();
    const auto& overlay = std::get<OverlayPanel>(figure.panels.front());
    IM_CHECK(overlay.query_row == rows / 2 + 1);
    IM_CHECK(overlay.query_column == columns / 2 - 1);
    IM_CHECK_STR_EQ(query_name(shown_run()).c_str(),
                    fmt::format("row {}, column {}", rows / 2 + 2, columns / 2).c_str());
    start_over(context);
  };

  IM_REGISTER_TEST(engine, "focus", "query_of_a_sentence")->TestFunc = [](ImGuiTestContext* context) {
    begin(context, true);
    choose_query(context, "class token [CLS]");
    IM_CHECK_STR_EQ(json_query().c_str(), "0");
    choose_query(context, "$$3/“sat”");
    IM_CHECK_STR_EQ(json_query().c_str(), "3");
    const Figure figure = application().figure_of("focus").value();
    IM_CHECK(std::get<TokensPanel>(figure.panels.front()).query == 3);

    // Pieces of words, too, can be told from each other.
    open_text(editor(), "Unbelievably hydrascopic owls");
    settle(context);
    const std::vector<TokenInfo>& tokens = shown_run().tokens;
    const auto piece =
        std::ranges::find_if(tokens, [](const TokenInfo& token) { return token.text.starts_with("##"); });
    IM_CHECK(piece != tokens.end());
    const auto index = static_cast<std::int64_t>(piece - tokens.begin());
    const std::string entry = as_label(token_name(shown_run(), index));
    IM_CHECK(entry.find("##") == std::string::npos);
    choose_query(context, fmt::format("$${}/{}", index, entry).c_str());
    IM_CHECK(document().scene().query == index);
    start_over(context);
  };
}

// What a panel shows, cell by cell.
std::vector<double> cells(const FigurePanel& panel) {
  if (const auto* overlay = std::get_if<OverlayPanel>(&panel))
    return {overlay->values.values.begin(), overlay->values.values.end()};
  return std::get<TokensPanel>(panel).values;
}

std::string title(const FigurePanel& panel) {
  return std::visit([](const auto& each) { return each.title; }, panel);
}

void check_cells(const FigurePanel& panel, std::span<const float> tokens) {
  const std::vector<double> shown = cells(panel);
  const auto first = tokens.size() - shown.size(); // a photograph's prefix tokens are no cells
  for (std::size_t i = 0; i < shown.size(); ++i)
    IM_CHECK_LT_NO_RET(std::abs(shown[i] - static_cast<double>(tokens[first + i])), 1e-6);
}

void show_maps(ImGuiTestContext* context) {
  context->ItemClick("maps/attention");
  context->ItemClick("maps/rollout");
  settle(context);
}

void register_map_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "focus", "attention_and_rollout_of_a_photograph")->TestFunc =
      [](ImGuiTestContext* context) {
        begin(context, false);
        select_query(editor(), 0);
        select_head(editor(), {.head = 2, .fusion = HeadFusion::mean});
        show_maps(context);
        IM_CHECK_STR_EQ(document_json(document()).at("view").at("maps").dump().c_str(),
                        R"(["focus","attention","rollout"])");
        const Figure figure = application().figure_of("focus").value();
        IM_CHECK_EQ(figure.panels.size(), 3U);
        for (const char* map : {"photograph", "$$1/photograph", "$$2/photograph"})
          IM_CHECK(context->ItemExists(map));
        const AttentionRowResult* row =
            find(results(), AttentionRowKey{.layer = document().scene().layer, .query = 0}).result;
        IM_CHECK(row != nullptr);
        check_cells(figure.panels[1], row->weights.slice(2));
        const RolloutResult* rollout = find(results(), RolloutKey{.heads = {2}}).result;
        IM_CHECK(rollout != nullptr);
        check_cells(figure.panels[2], rollout->weights.slice(0).first(row->weights.slice(2).size()));
        double sum = 0;
        for (const float weight : row->weights.slice(2)) sum += static_cast<double>(weight);
        IM_CHECK_LT(std::abs(sum - 1), 1e-4);
        IM_CHECK(title(figure.panels[1]).starts_with("attention, layer"));
        IM_CHECK(title(figure.panels[2]).starts_with("rollout, layers 0–"));
        IM_CHECK(figure.subtitle.find("no explanation") != std::string::npos);

        context->ItemClick("maps/focus");
        context->ItemClick("maps/attention");
        context->ItemClick("maps/rollout"); // the only one stays
        settle(context);
        IM_CHECK(document().view.maps == std::set{MapKind::rollout});
        start_over(context);
      };

  IM_REGISTER_TEST(engine, "focus", "kernel_without_the_head_names_the_one_shown")->TestFunc =
      [](ImGuiTestContext* context) {
        begin(context, false);
        const int layer = document().scene().layer;
        set_layer_kernel(editor(), layer, {.name = "linear-cosine", .parameters = {{"heads", "1"}}});
        select_query(editor(), 0);
        select_head(editor(), {.head = 2, .fusion = HeadFusion::mean});
        show_maps(context);
        const Figure figure = application().figure_of("focus").value();
        IM_CHECK_EQ(figure.panels.size(), 3U);
        const AttentionRowResult* row = find(results(), AttentionRowKey{.layer = layer, .query = 0}).result;
        IM_CHECK(row != nullptr);
        IM_CHECK_EQ(row->weights.extent(0), std::int64_t{1});
        check_cells(figure.panels[1], row->weights.slice(0));
        IM_CHECK(title(figure.panels[1]).starts_with(fmt::format("attention, layer {}, head 0", layer)));
        // Rollout is of all layers, and says in how many of them another head stands for the chosen one.
        IM_CHECK(title(figure.panels[2]).find("head 2") != std::string::npos);
        IM_CHECK(title(figure.panels[2]).find("mean of heads in 1 layer without head 2") !=
                 std::string::npos);
        start_over(context);
      };

  IM_REGISTER_TEST(engine, "focus", "discard_ratio_changes_rollout_alone")->TestFunc =
      [](ImGuiTestContext* context) {
        begin(context, false);
        show_maps(context);
        const auto before = cells(application().figure_of("focus")->panels[2]);
        const RunResult* focus = &shown_run();
        context->ItemInputValue("##Drop lowest weights", 60);
        settle(context);
        IM_CHECK_EQ(document_json(document()).at("view").at("discard").get<double>(), 0.6);
        IM_CHECK(cells(application().figure_of("focus")->panels[2]) != before);
        IM_CHECK(&shown_run() == focus); // nothing else was computed again
        editor().undo();
        settle(context);
        IM_CHECK_EQ(document().view.discard, 0.0);
        IM_CHECK(cells(application().figure_of("focus")->panels[2]) == before);
        start_over(context);
      };

  IM_REGISTER_TEST(engine, "focus", "all_queries_are_averaged")->TestFunc = [](ImGuiTestContext* context) {
    begin(context, true);
    select_query(editor(), std::nullopt);
    select_head(editor(), {.head = std::nullopt, .fusion = HeadFusion::max});
    show_maps(context);
    Figure figure = application().figure_of("focus").value();
    IM_CHECK_EQ(figure.panels.size(), 3U);
    const auto tokens = static_cast<double>(shown_run().tokens.size());
    const RolloutResult* rollout = find(results(), RolloutKey{.fusion = HeadFusion::max}).result;
    IM_CHECK(rollout != nullptr);
    std::vector<float> mean(shown_run().tokens.size());
    for (std::size_t at = 0; at < rollout->weights.values.size(); ++at)
      mean[at % mean.size()] += rollout->weights.values[at] / static_cast<float>(tokens);
    check_cells(figure.panels[2], mean);
    const auto& note = std::get<TokensPanel>(figure.panels[1]).note;
    IM_CHECK(note.find(fmt::format("mean over the rows of {:.0f} tokens", tokens)) != std::string::npos);

    // A masked word neither asks nor is looked at.
    hide_tokens(editor(), 3, 1, true);
    settle(context);
    figure = application().figure_of("focus").value();
    IM_CHECK(std::isnan(cells(figure.panels[1])[3]));
    IM_CHECK(std::get<TokensPanel>(figure.panels[2]).note.find(fmt::format("{:.0f} tokens", tokens - 1)) !=
             std::string::npos);
    start_over(context);
  };

  IM_REGISTER_TEST(engine, "focus", "attention_names_the_head_that_is_shown")->TestFunc =
      [](ImGuiTestContext* context) {
        begin(context, false);
        const int layer = document().scene().layer;
        set_layer_kernel(editor(), layer, {.name = "linear-cosine", .parameters = {{"heads", "2"}}});
        select_head(editor(), {.head = 5}); // the kernel's last one is shown
        change_view(editor(), "Attention", [](ViewOptions& view) { view.maps = {MapKind::attention}; });
        settle(context);
        const std::string shown = title(application().figure_of("focus")->panels.front());
        IM_CHECK(shown.starts_with(fmt::format("attention, layer {}, head 1\n", layer)));
        start_over(context);
      };

  IM_REGISTER_TEST(engine, "focus", "maps_of_both_sides")->TestFunc = [](ImGuiTestContext* context) {
    begin(context, false);
    set_layer_kernel(editor(), document().scene().layer, hydra);
    change_view(editor(), "All", [](ViewOptions& view) {
      view.shown = Shown::all;
      view.maps = {MapKind::focus, MapKind::attention, MapKind::rollout};
    });
    settle(context);
    const Figure figure = application().figure_of("focus").value();
    IM_CHECK_EQ(figure.panels.size(), 9U);
    IM_CHECK_EQ(figure.columns, 3);
    for (std::size_t row = 0; row < 3; ++row) {
      const auto a = cells(figure.panels[row * 3]), b = cells(figure.panels[row * 3 + 1]);
      const auto difference = cells(figure.panels[row * 3 + 2]);
      for (std::size_t i = 0; i < difference.size(); ++i)
        IM_CHECK_LT_NO_RET(std::abs((a.empty() ? 0 : a[i]) - (b.empty() ? 0 : b[i]) - difference[i]), 1e-6);
      IM_CHECK(std::get<OverlayPanel>(figure.panels[row * 3 + 2]).scale.map == ColourMap::blue_white_red);
    }
    // Hydra has no attention weights: what is shown for them is implied and signed, and says so.
    IM_CHECK(title(figure.panels[3]).find("implied weights, signed") != std::string::npos);
    IM_CHECK_LT(std::get<OverlayPanel>(figure.panels[3]).scale.low, 0.0);
    IM_CHECK(title(figure.panels[4]).find("implied") == std::string::npos);
    IM_CHECK(title(figure.panels[6]).find("absolute weights") != std::string::npos);
    start_over(context);
  };
}

void register_overlay_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "focus", "overlay_mode_is_chosen_and_exported")->TestFunc =
      [](ImGuiTestContext* context) {
        begin(context, false);
        const auto overlay = [] {
          return std::get<OverlayPanel>(application().figure_of("focus")->panels.front());
        };
        IM_CHECK(overlay().mode == OverlayMode::value);
        context->ItemClick("overlay/dimmed");
        context->Yield(2);
        IM_CHECK(overlay().mode == OverlayMode::dimmed);
        IM_CHECK_STR_EQ(document_json(document()).at("view").at("overlay").get<std::string>().c_str(),
                        "dimmed");
        editor().undo();
        context->Yield(2);
        IM_CHECK(overlay().mode == OverlayMode::value);
        start_over(context);
      };

  IM_REGISTER_TEST(engine, "focus", "equal_sides_say_so")->TestFunc = [](ImGuiTestContext* context) {
    for (const bool text : {false, true}) {
      begin(context, text);
      change_view(editor(), "All", [](ViewOptions& view) { view.shown = Shown::all; });
      settle(context);
      const FigurePanel equal = application().figure_of("focus")->panels.back();
      IM_CHECK(std::visit([](const auto& panel) { return panel.title; }, equal).starts_with("A − B"));
      const auto* const overlay = std::get_if<OverlayPanel>(&equal);
      IM_CHECK(text || (overlay != nullptr && overlay->values.empty() && overlay->note == same_note));
      IM_CHECK(!text || std::get<TokensPanel>(equal).note == same_note);
      if (!text) {
        IM_CHECK(context->ItemExists("$$1/photograph"));
        IM_CHECK(!context->ItemExists("$$2/photograph")); // the line stands in its place
      }
      change_view(editor(), "Difference", [](ViewOptions& view) { view.shown = Shown::difference; });
      settle(context);
      IM_CHECK(application().figure_of("focus").has_value()); // it is exported with that line
      set_layer_kernel(editor(), document().scene().layer, elu);
      settle(context);
      const FigurePanel other = application().figure_of("focus")->panels.back();
      IM_CHECK(!cells(other).empty());
    }
    start_over(context);
  };
}

// Pictures for the eye, in the build folder.
void take_pictures(ImGuiTestContext* context, ThemeChoice theme, int scale) {
  bool off_screen = false;
  between_frames(context, [&] {
    off_screen = application().display().description().starts_with("off screen");
    if (off_screen) application().display().resize(1600 * scale, 1000 * scale);
  });
  if (!off_screen) return; // a window's own frame cannot be read back
  const auto folder = test::program().parent_path() / "window_screenshots" /
                      fmt::format("focus-{}-{}x", theme == ThemeChoice::dark ? "dark" : "light", scale);
  std::filesystem::create_directories(folder);
  for (const bool text : {false, true}) {
    begin(context, text);
    editor().change_settings([&](Settings& settings) {
      settings.theme = theme;
      settings.scale = scale;
    });
    set_layer_kernel(editor(), document().scene().layer, text ? elu : hydra);
    select_query(editor(), text ? 3 : 60);
    context->MouseMoveToPos(ImVec2(1, 1));
    for (const Shown shown : {Shown::a, Shown::all}) {
      change_view(editor(), "Maps", [&](ViewOptions& view) {
        view.shown = shown;
        view.maps = {MapKind::focus, MapKind::attention, MapKind::rollout};
        view.look.interpolation = shown == Shown::a ? Interpolation::bicubic : Interpolation::nearest;
      });
      settle(context);
      const auto name =
          fmt::format("{}-{}.png", text ? "sentence" : "photograph", shown == Shown::a ? "a" : "all");
      between_frames(context, [&] { write_png(folder / name, application().read_frame()); });
      IM_CHECK(std::filesystem::file_size(folder / name) > 10000);
    }
  }
  between_frames(context, [] { application().display().resize(1600, 1000); });
  start_over(context);
}

void register_pictures(ImGuiTestEngine* engine) {
  static constexpr std::array<const char*, 4> names = {"pictures_dark_1x", "pictures_light_1x",
                                                       "pictures_dark_2x", "pictures_light_2x"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    IM_REGISTER_TEST(engine, "focus", names[i])->TestFunc = [i](ImGuiTestContext* context) {
      take_pictures(context, i % 2 == 0 ? ThemeChoice::dark : ThemeChoice::light, i < 2 ? 1 : 2);
    };
  }
}

} // namespace

void register_focus_map_tests(ImGuiTestEngine* engine) {
  register_query_tests(engine);
  register_map_tests(engine);
  register_overlay_tests(engine);
  register_pictures(engine);
}

} // namespace hydrascope::app::window_tests
