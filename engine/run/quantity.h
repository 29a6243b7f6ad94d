// What can be read off a run, whatever it is. A key names one quantity: a small value with operator== that
// says of which layer, kernel, head, query … it is, the type of its result, and, found by its type, `const
// Quantity& quantity_of(const Key&)`, which knows how it is read (engine/run/reading.h). A request holds
// keys, a result holds what was read, and both are asked by key. Plain header.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace hydrascope {

class Quantity;
struct Schedule;

template <typename K>
concept KeyOfQuantity = std::equality_comparable<K> && requires(const K& key) {
  typename K::Result;
  { quantity_of(key) } -> std::same_as<const Quantity&>;
};

// Any key.
class QuantityKey {
public:
  template <KeyOfQuantity K>
  QuantityKey(K key)
      : held_(std::make_shared<const Of<K>>(std::move(key))) {} // NOLINT: keys are written as they are

  const Quantity& quantity() const { return held_->quantity(); }
  // The key itself; null where it is of another type.
  template <KeyOfQuantity K>
  const K* get() const {
    const auto* of = dynamic_cast<const Of<K>*>(held_.get());
    return of == nullptr ? nullptr : &of->key;
  }
  // Whether the result under this key holds what the other names: the same key, or one that K::serves() says
  // is a part.
  bool serves(const QuantityKey& other) const { return held_ == other.held_ || held_->serves(*other.held_); }
  bool operator==(const QuantityKey& other) const {
    return held_ == other.held_ || held_->equals(*other.held_);
  }

private:
  struct Held {
    Held() = default;
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    virtual ~Held() = default;
    virtual bool equals(const Held& other) const = 0;
    virtual bool serves(const Held& other) const = 0;
    virtual const Quantity& quantity() const = 0;
  };
  template <typename K>
  struct Of final : Held {
    explicit Of(K own) : key(std::move(own)) {}
    bool equals(const Held& other) const override {
      const auto* of = dynamic_cast<const Of*>(&other);
      return of != nullptr && key == of->key;
    }
    bool serves(const Held& other) const override {
      const auto* of = dynamic_cast<const Of*>(&other);
      if (of == nullptr) return false;
      if constexpr (requires { key.serves(of->key); }) return key.serves(of->key);
      return key == of->key;
    }
    const Quantity& quantity() const override { return quantity_of(key); }
    K key;
  };

  std::shared_ptr<const Held> held_;
};

// Keys in the order in which they were added; none that another one serves.
class QuantityKeys {
public:
  QuantityKeys() = default;
  QuantityKeys(std::initializer_list<QuantityKey> keys) {
    for (const QuantityKey& key : keys) add(key);
  }

  void add(QuantityKey key) {
    if (serves(key)) return;
    std::erase_if(keys_, [&](const QuantityKey& each) { return key.serves(each); });
    keys_.push_back(std::move(key));
  }
  void add(const QuantityKeys& keys) {
    for (const QuantityKey& key : keys) add(key);
  }
  bool serves(const QuantityKey& key) const {
    return std::ranges::any_of(keys_, [&](const QuantityKey& each) { return each.serves(key); });
  }
  // Those that `held` does not serve.
  QuantityKeys missing_in(const QuantityKeys& held) const {
    QuantityKeys missing;
    for (const QuantityKey& key : keys_)
      if (!held.serves(key)) missing.keys_.push_back(key);
    return missing;
  }
  // Those of one type.
  template <KeyOfQuantity K>
  std::vector<K> of() const {
    std::vector<K> keys;
    for (const QuantityKey& key : keys_)
      if (const K* one = key.get<K>()) keys.push_back(*one);
    return keys;
  }
  bool empty() const { return keys_.empty(); }
  std::size_t size() const { return keys_.size(); }
  std::vector<QuantityKey>::const_iterator begin() const { return keys_.begin(); }
  std::vector<QuantityKey>::const_iterator end() const { return keys_.end(); }

private:
  std::vector<QuantityKey> keys_;
};

// What was read, by key.
class QuantityResults {
public:
  template <KeyOfQuantity K>
  struct Entry {
    K key;
    const typename K::Result* result;
  };

  template <KeyOfQuantity K>
  void add(K key, typename K::Result result) {
    entries_.emplace_back(std::move(key), std::make_shared<const typename K::Result>(std::move(result)));
  }
  // The result under a key that serves this one; null: there is none.
  template <KeyOfQuantity K>
  const typename K::Result* find(const K& key) const {
    const QuantityKey wanted(key);
    for (const auto& [held, result] : entries_)
      if (held.serves(wanted)) return static_cast<const typename K::Result*>(result.get());
    return nullptr;
  }
  // All of one type, in the order in which they were asked for.
  template <KeyOfQuantity K>
  std::vector<Entry<K>> all() const {
    std::vector<Entry<K>> found;
    for (const auto& [key, result] : entries_)
      if (const K* one = key.template get<K>())
        found.push_back({*one, static_cast<const typename K::Result*>(result.get())});
    return found;
  }
  QuantityKeys keys() const {
    QuantityKeys keys;
    for (const auto& entry : entries_) keys.add(entry.first);
    return keys;
  }
  // Puts the results into the order of these keys.
  void order_as(const QuantityKeys& keys) {
    std::vector<std::pair<QuantityKey, std::shared_ptr<const void>>> ordered;
    for (const QuantityKey& key : keys)
      for (auto& entry : entries_)
        if (entry.first == key) ordered.push_back(entry);
    entries_ = std::move(ordered);
  }

private:
  std::vector<std::pair<QuantityKey, std::shared_ptr<const void>>> entries_;
};

// The keys for which a kernel runs beside the schedule's own: they may fail where the schedule itself runs.
QuantityKeys comparisons_in(const QuantityKeys& keys, const Schedule& schedule);

} // namespace hydrascope
