#include "app/document/editor.h"

#include <algorithm>
#include <set>
#include <utility>

namespace hydrascope::app {

std::size_t Editor::add_session(SessionFile session) {
  std::set<std::size_t> in_use;
  history_.each([&](const Document& document) { in_use.insert(document.session); });
  // Each holds the pictures of its file, as read.
  for (std::size_t i = 0; i < sessions_.size(); ++i)
    if (!in_use.contains(i)) sessions_[i].saved.reset();
  sessions_.push_back(std::move(session));
  return sessions_.size() - 1;
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
