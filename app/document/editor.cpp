#include "app/document/editor.h"

#include <algorithm>
#include <set>
#include <utility>

namespace hydrascope::app {

void Editor::set_initial(Document document) {
  history_.replace(std::move(document));
  drop_unused_sessions();
}

std::size_t Editor::add_session(SessionFile session) {
  drop_unused_sessions();
  sessions_[++newest_session_] = std::move(session);
  return newest_session_;
}

SessionFile* Editor::session_of(const Document& document) {
  const auto found = sessions_.find(document.session);
  return found == sessions_.end() ? nullptr : &found->second;
}

void Editor::drop_unused_sessions() {
  std::set<std::size_t> in_use{newest_session_}; // to which a document is about to belong
  history_.each([&](const Document& document) { in_use.insert(document.session); });
  std::erase_if(sessions_, [&](const auto& entry) { return !in_use.contains(entry.first); });
  sessions_.try_emplace(document().session);
}

void Editor::change(std::string label, const std::function<void(Document&)>& edit,
                    const std::string& gesture) {
  Document next = history_.present();
  edit(next);
  history_.change(std::move(next), std::move(label), gesture);
}

void Messages::add(Severity severity, std::string text, double seconds, const std::string& topic) {
  if (!topic.empty())
    std::erase_if(messages_, [&](const Message& message) { return message.topic == topic; });
  const auto repeated = std::ranges::find_if(messages_, [&](const Message& message) {
    return message.severity == severity && message.text == text;
  });
  if (repeated != messages_.end()) {
    Message again = std::move(*repeated);
    messages_.erase(repeated);
    again.seconds = seconds;
    ++again.count;
    messages_.push_back(std::move(again));
    return;
  }
  messages_.push_back({severity, std::move(text), seconds, 1, topic});
  constexpr std::size_t most_messages = 100;
  if (messages_.size() > most_messages) messages_.erase(messages_.begin());
}

void Messages::remove(std::size_t index) {
  if (index < messages_.size()) messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(index));
}

} // namespace hydrascope::app
