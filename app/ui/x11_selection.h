// The CLIPBOARD selection of an X server, for one picture: owning it, and converting it from its owner. For
// use by one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <xcb/xcb.h>

namespace hydrascope::app {

// A connection with an unmapped window. XCB rather than Xlib: errors (a requestor that disappears) arrive as
// events, where Xlib's process-wide handler would exit.
class X11Connection {
public:
  // Throws Error if the display cannot be reached.
  explicit X11Connection(const char* display);
  ~X11Connection();
  X11Connection(X11Connection&& other) noexcept;
  X11Connection& operator=(X11Connection&&) = delete;

  xcb_connection_t* get() const { return connection_; }
  xcb_window_t window() const { return window_; }
  xcb_atom_t atom(std::string_view name) const;
  std::string atom_name(xcb_atom_t atom) const;

private:
  xcb_connection_t* connection_ = nullptr;
  xcb_window_t window_ = 0;
};

class X11Selection {
public:
  explicit X11Selection(X11Connection connection);

  int descriptor() const;
  bool alive() const;
  bool busy() const { return fetching_ != Fetching::nothing || !transfers_.empty(); }

  void offer(std::shared_ptr<const std::string> png);
  void fetch(); // for take_fetched()
  // Handles all events that have arrived, and time limits.
  void handle_events();

  struct Fetched {
    std::string bytes; // of a picture file; empty if there is none
    bool text = false;
    std::string problem;
  };
  std::optional<Fetched> take_fetched();

private:
  struct Atoms {
    xcb_atom_t clipboard, targets, timestamp, incr, png, property, clock;
  };
  // A picture being sent to another program in pieces (INCR).
  struct Transfer {
    xcb_window_t window = 0;
    xcb_atom_t property = 0, type = 0;
    std::shared_ptr<const std::string> bytes;
    std::size_t sent = 0;
    bool ended = false; // the final, empty piece was sent
    std::chrono::steady_clock::time_point last;
  };
  enum class Fetching { nothing, targets, picture, pieces };

  void handle(const xcb_generic_event_t& event);
  void handle_time(const xcb_property_notify_event_t& event);
  void handle_request(const xcb_selection_request_event_t& event);
  bool serve(const xcb_selection_request_event_t& event, xcb_atom_t property);
  void send_piece(Transfer& transfer);
  void handle_answer(const xcb_selection_notify_event_t& event);
  void handle_piece();
  void choose_target(const std::string& atoms);
  void convert(xcb_atom_t target, Fetching next);
  std::string read_property(xcb_atom_t& type);
  void finish(Fetched fetched);
  void drop_expired();

  X11Connection connection_;
  Atoms atoms_{};
  std::size_t most_piece_ = 0;

  std::shared_ptr<const std::string> pending_; // offered once the server's time is known
  std::shared_ptr<const std::string> owned_;
  xcb_timestamp_t owned_since_ = 0;
  std::vector<Transfer> transfers_;

  Fetching fetching_ = Fetching::nothing;
  std::chrono::steady_clock::time_point last_piece_;
  std::string pieces_;
  std::optional<Fetched> fetched_;
};

} // namespace hydrascope::app
