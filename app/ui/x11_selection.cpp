#include "app/ui/x11_selection.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "app/ui/picture_clipboard.h"
#include "engine/base/error.h"

namespace hydrascope::app {

namespace {

struct Free {
  void operator()(void* pointer) const {
    std::free(pointer); // NOLINT(cppcoreguidelines-no-malloc): as XCB allocates
  }
};
template <typename T>
using Owned = std::unique_ptr<T, Free>;

constexpr std::chrono::seconds patience{5}; // for the other end of a transfer
constexpr std::size_t most_bytes = std::size_t{1} << 28;
constexpr std::uint8_t atoms_format = 32, bytes_format = 8;

constexpr std::array<std::string_view, 4> text_types = {"UTF8_STRING", "text/plain;charset=utf-8", "STRING",
                                                        "text/uri-list"};

} // namespace

X11Connection::X11Connection(const char* display) {
  int screen_number = 0;
  connection_ = xcb_connect(display, &screen_number);
  if (xcb_connection_has_error(connection_) != 0) {
    xcb_disconnect(connection_);
    throw Error("clipboard",
                fmt::format("the X display {} cannot be reached", display == nullptr ? "" : display),
                "check DISPLAY");
  }
  xcb_screen_iterator_t screens = xcb_setup_roots_iterator(xcb_get_setup(connection_));
  for (; screen_number > 0 && screens.rem > 1; --screen_number) xcb_screen_next(&screens);
  window_ = xcb_generate_id(connection_);
  const std::array<std::uint32_t, 1> events = {XCB_EVENT_MASK_PROPERTY_CHANGE};
  xcb_create_window(connection_, XCB_COPY_FROM_PARENT, window_, screens.data->root, 0, 0, 1, 1, 0,
                    XCB_WINDOW_CLASS_INPUT_OUTPUT, XCB_COPY_FROM_PARENT, XCB_CW_EVENT_MASK, events.data());
  xcb_flush(connection_);
}

X11Connection::X11Connection(X11Connection&& other) noexcept
    : connection_(std::exchange(other.connection_, nullptr)), window_(other.window_) {}

X11Connection::~X11Connection() {
  if (connection_ != nullptr) xcb_disconnect(connection_);
}

xcb_atom_t X11Connection::atom(std::string_view name) const {
  const auto cookie = xcb_intern_atom(connection_, 0, static_cast<std::uint16_t>(name.size()), name.data());
  const Owned<xcb_intern_atom_reply_t> reply(xcb_intern_atom_reply(connection_, cookie, nullptr));
  return reply ? reply->atom : static_cast<xcb_atom_t>(XCB_ATOM_NONE);
}

std::string X11Connection::atom_name(xcb_atom_t atom) const {
  const auto cookie = xcb_get_atom_name(connection_, atom);
  const Owned<xcb_get_atom_name_reply_t> reply(xcb_get_atom_name_reply(connection_, cookie, nullptr));
  if (!reply) return {};
  return {xcb_get_atom_name_name(reply.get()),
          static_cast<std::size_t>(xcb_get_atom_name_name_length(reply.get()))};
}

X11Selection::X11Selection(X11Connection connection) : connection_(std::move(connection)) {
  atoms_ = {.clipboard = connection_.atom("CLIPBOARD"),
            .targets = connection_.atom("TARGETS"),
            .timestamp = connection_.atom("TIMESTAMP"),
            .incr = connection_.atom("INCR"),
            .png = connection_.atom("image/png"),
            .property = connection_.atom("HYDRASCOPE_PASTE"),
            .clock = connection_.atom("HYDRASCOPE_TIME")};
  // A request's length is in words of four bytes; larger pictures are sent by INCR.
  constexpr std::size_t header = 1024, most = std::size_t{1} << 18;
  const std::size_t longest = std::size_t{xcb_get_maximum_request_length(connection_.get())} * 4;
  most_piece_ = std::clamp(longest - header, header, most);
}

int X11Selection::descriptor() const { return xcb_get_file_descriptor(connection_.get()); }
bool X11Selection::alive() const { return xcb_connection_has_error(connection_.get()) == 0; }

void X11Selection::offer(std::shared_ptr<const std::string> png) {
  pending_ = std::move(png);
  // Ownership needs the server's time, which the event of an empty property change reports.
  xcb_change_property(connection_.get(), XCB_PROP_MODE_APPEND, connection_.window(), atoms_.clock,
                      XCB_ATOM_INTEGER, atoms_format, 0, nullptr);
  xcb_flush(connection_.get());
}

void X11Selection::fetch() {
  if (owned_) return finish({.bytes = *owned_, .text = false, .problem = {}});
  pieces_.clear();
  convert(atoms_.targets, Fetching::targets);
}

std::optional<X11Selection::Fetched> X11Selection::take_fetched() {
  return std::exchange(fetched_, std::nullopt);
}

void X11Selection::finish(Fetched fetched) {
  fetching_ = Fetching::nothing;
  pieces_.clear();
  fetched_ = std::move(fetched);
}

void X11Selection::convert(xcb_atom_t target, Fetching next) {
  fetching_ = next;
  last_piece_ = std::chrono::steady_clock::now();
  xcb_delete_property(connection_.get(), connection_.window(), atoms_.property);
  xcb_convert_selection(connection_.get(), connection_.window(), atoms_.clipboard, target, atoms_.property,
                        XCB_CURRENT_TIME);
  xcb_flush(connection_.get());
}

void X11Selection::handle_events() {
  while (const Owned<xcb_generic_event_t> event{xcb_poll_for_event(connection_.get())}) handle(*event);
  drop_expired();
  xcb_flush(connection_.get());
}

void X11Selection::handle(const xcb_generic_event_t& event) {
  constexpr std::uint8_t without_sent_flag = 0x7f;
  switch (event.response_type & without_sent_flag) {
    case XCB_SELECTION_REQUEST:
      handle_request(reinterpret_cast<const xcb_selection_request_event_t&>(event));
      break;
    case XCB_SELECTION_CLEAR: {
      const auto& clear = reinterpret_cast<const xcb_selection_clear_event_t&>(event);
      if (clear.selection == atoms_.clipboard)
        owned_.reset(); // transfers in progress have their own reference
      break;
    }
    case XCB_SELECTION_NOTIFY:
      handle_answer(reinterpret_cast<const xcb_selection_notify_event_t&>(event));
      break;
    case XCB_PROPERTY_NOTIFY: {
      const auto& change = reinterpret_cast<const xcb_property_notify_event_t&>(event);
      if (change.window == connection_.window()) {
        if (change.atom == atoms_.clock) handle_time(change);
        const bool piece = change.atom == atoms_.property && change.state == XCB_PROPERTY_NEW_VALUE;
        if (piece && fetching_ == Fetching::pieces) handle_piece();
        break;
      }
      for (Transfer& transfer : transfers_) {
        const bool taken = transfer.window == change.window && transfer.property == change.atom &&
                           change.state == XCB_PROPERTY_DELETE;
        if (taken) send_piece(transfer);
      }
      break;
    }
    default: break; // includes errors: drop_expired handles a requestor that disappeared
  }
}

void X11Selection::handle_time(const xcb_property_notify_event_t& event) {
  if (!pending_) return;
  xcb_set_selection_owner(connection_.get(), connection_.window(), atoms_.clipboard, event.time);
  const auto cookie = xcb_get_selection_owner(connection_.get(), atoms_.clipboard);
  const Owned<xcb_get_selection_owner_reply_t> owner(
      xcb_get_selection_owner_reply(connection_.get(), cookie, nullptr));
  if (owner && owner->owner == connection_.window()) {
    owned_ = std::move(pending_);
    owned_since_ = event.time;
  }
  pending_.reset();
}

void X11Selection::handle_request(const xcb_selection_request_event_t& event) {
  // Obsolete clients name no property, which stands for the target's name (ICCCM 2.2).
  const xcb_atom_t property = event.property == XCB_ATOM_NONE ? event.target : event.property;
  xcb_selection_notify_event_t answer{};
  answer.response_type = XCB_SELECTION_NOTIFY;
  answer.requestor = event.requestor;
  answer.selection = event.selection;
  answer.target = event.target;
  answer.time = event.time;
  answer.property = serve(event, property) ? property : static_cast<xcb_atom_t>(XCB_ATOM_NONE);
  // An event has 32 bytes on the wire, more than this structure.
  std::array<char, 32> wire{};
  std::memcpy(wire.data(), &answer, sizeof answer);
  xcb_send_event(connection_.get(), 0, event.requestor, XCB_EVENT_MASK_NO_EVENT, wire.data());
}

bool X11Selection::serve(const xcb_selection_request_event_t& event, xcb_atom_t property) {
  const bool before = event.time != XCB_CURRENT_TIME && event.time < owned_since_;
  if (!owned_ || event.selection != atoms_.clipboard || before) return false;
  const auto put = [&](xcb_atom_t type, std::uint8_t format, std::size_t count, const void* data) {
    xcb_change_property(connection_.get(), XCB_PROP_MODE_REPLACE, event.requestor, property, type, format,
                        static_cast<std::uint32_t>(count), data);
  };
  if (event.target == atoms_.targets) {
    const std::array targets = {atoms_.targets, atoms_.timestamp, atoms_.png};
    put(XCB_ATOM_ATOM, atoms_format, targets.size(), targets.data());
    return true;
  }
  if (event.target == atoms_.timestamp) {
    put(XCB_ATOM_INTEGER, atoms_format, 1, &owned_since_);
    return true;
  }
  if (event.target != atoms_.png) return false;
  if (owned_->size() <= most_piece_) {
    put(atoms_.png, bytes_format, owned_->size(), owned_->data());
    return true;
  }
  const std::array<std::uint32_t, 1> events = {XCB_EVENT_MASK_PROPERTY_CHANGE};
  xcb_change_window_attributes(connection_.get(), event.requestor, XCB_CW_EVENT_MASK, events.data());
  const auto size = static_cast<std::uint32_t>(owned_->size());
  put(atoms_.incr, atoms_format, 1, &size);
  transfers_.push_back({.window = event.requestor,
                        .property = property,
                        .type = atoms_.png,
                        .bytes = owned_,
                        .sent = 0,
                        .ended = false,
                        .last = std::chrono::steady_clock::now()});
  return true;
}

void X11Selection::send_piece(Transfer& transfer) {
  const std::size_t size = std::min(most_piece_, transfer.bytes->size() - transfer.sent);
  if (transfer.ended) return;
  xcb_change_property(connection_.get(), XCB_PROP_MODE_REPLACE, transfer.window, transfer.property,
                      transfer.type, bytes_format, static_cast<std::uint32_t>(size),
                      transfer.bytes->data() + transfer.sent);
  transfer.sent += size;
  transfer.ended = size == 0;
  transfer.last = std::chrono::steady_clock::now();
}

std::string X11Selection::read_property(xcb_atom_t& type) {
  const auto cookie = xcb_get_property(connection_.get(), 1, connection_.window(), atoms_.property,
                                       XCB_GET_PROPERTY_TYPE_ANY, 0, most_bytes / 4);
  const Owned<xcb_get_property_reply_t> reply(xcb_get_property_reply(connection_.get(), cookie, nullptr));
  type = reply ? reply->type : static_cast<xcb_atom_t>(XCB_ATOM_NONE);
  if (!reply) return {};
  return {static_cast<const char*>(xcb_get_property_value(reply.get())),
          static_cast<std::size_t>(xcb_get_property_value_length(reply.get()))};
}

void X11Selection::handle_answer(const xcb_selection_notify_event_t& event) {
  if (fetching_ != Fetching::targets && fetching_ != Fetching::picture) return;
  if (event.property == XCB_ATOM_NONE) {
    // An owner that does not list its targets is an old one, with text.
    const auto cookie = xcb_get_selection_owner(connection_.get(), atoms_.clipboard);
    const Owned<xcb_get_selection_owner_reply_t> owner(
        xcb_get_selection_owner_reply(connection_.get(), cookie, nullptr));
    const bool owned = owner && owner->owner != XCB_WINDOW_NONE;
    if (owned && fetching_ == Fetching::targets) return finish({.bytes = {}, .text = true, .problem = {}});
    return finish({.bytes = {}, .text = false, .problem = owned ? "the picture was refused" : "it is empty"});
  }
  xcb_atom_t type = 0;
  std::string bytes = read_property(type);
  if (fetching_ == Fetching::targets) return choose_target(bytes);
  if (type == atoms_.incr) { // reading the property deleted it, which requests the first piece
    fetching_ = Fetching::pieces;
    last_piece_ = std::chrono::steady_clock::now();
    return;
  }
  if (bytes.empty()) return finish({.bytes = {}, .text = false, .problem = "the picture is empty"});
  finish({.bytes = std::move(bytes), .text = false, .problem = {}});
}

void X11Selection::choose_target(const std::string& atoms) {
  std::vector<xcb_atom_t> offered(atoms.size() / sizeof(xcb_atom_t));
  std::memcpy(offered.data(), atoms.data(), offered.size() * sizeof(xcb_atom_t));
  const auto has = [&](std::string_view name) {
    return std::ranges::find(offered, connection_.atom(name)) != offered.end();
  };
  for (const std::string_view type : picture_types) {
    if (has(type)) return convert(connection_.atom(type), Fetching::picture);
  }
  const bool text = std::ranges::any_of(text_types, has);
  finish({.bytes = {}, .text = text, .problem = text ? "" : "it holds neither a picture nor text"});
}

void X11Selection::handle_piece() {
  xcb_atom_t type = 0;
  const std::string piece = read_property(type);
  last_piece_ = std::chrono::steady_clock::now();
  if (pieces_.size() + piece.size() > most_bytes)
    return finish({.bytes = {}, .text = false, .problem = "the picture has more than 256 MB"});
  if (!piece.empty()) {
    pieces_ += piece;
    return;
  }
  if (pieces_.empty()) return finish({.bytes = {}, .text = false, .problem = "the picture is empty"});
  finish({.bytes = std::move(pieces_), .text = false, .problem = {}});
}

void X11Selection::drop_expired() {
  const auto now = std::chrono::steady_clock::now();
  std::erase_if(transfers_,
                [&](const Transfer& transfer) { return transfer.ended || now - transfer.last > patience; });
  if (fetching_ != Fetching::nothing && now - last_piece_ > patience)
    finish({.bytes = {}, .text = false, .problem = "the program that holds it does not answer"});
}

} // namespace hydrascope::app
