// Keys and results of quantities, which are read off a run. A key is a small value with operator== (layer,
// kernel, head, query …) and a Result type; the free function `const Quantity& quantity_of(const Key&)`
// returns how it is read (engine/run/reading.h). A request holds keys, and a result is found by the same key.
// Plain header.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hydrascope {

class Quantity;
struct CaptureInfo;
struct ModelInfo;
struct Schedule;

template <typename K>
concept KeyOfQuantity = std::equality_comparable<K> && requires(const K& key) {
  typename K::Result;
  { quantity_of(key) } -> std::same_as<const Quantity&>;
};

// A key of any type.
class QuantityKey {
public:
  template <KeyOfQuantity K>
  QuantityKey(K key)
      : held_(std::make_shared<const Of<K>>(std::move(key))) {
  } // NOLINT: implicit, so that keys can be listed as they are

  const Quantity& quantity() const { return held_->quantity(); }
  // The key itself; null if it is of another type.
  template <KeyOfQuantity K>
  const K* get() const {
    const auto* of = dynamic_cast<const Of<K>*>(held_.get());
    return of == nullptr ? nullptr : &of->key;
  }
  // Whether the result under this key contains the other's: the keys are equal, or K::covers() says so.
  bool covers(const QuantityKey& other) const { return held_ == other.held_ || held_->covers(*other.held_); }
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
    virtual bool covers(const Held& other) const = 0;
    virtual const Quantity& quantity() const = 0;
  };
  template <typename K>
  struct Of final : Held {
    explicit Of(K own) : key(std::move(own)) {}
    bool equals(const Held& other) const override {
      const auto* of = dynamic_cast<const Of*>(&other);
      return of != nullptr && key == of->key;
    }
    bool covers(const Held& other) const override {
      const auto* of = dynamic_cast<const Of*>(&other);
      if (of == nullptr) return false;
      if constexpr (requires { key.covers(of->key); }) return key.covers(of->key);
      return key == of->key;
    }
    const Quantity& quantity() const override { return quantity_of(key); }
    K key;
  };

  std::shared_ptr<const Held> held_;
};

// Keys in the order in which they were added, without those that another one covers.
class QuantityKeys {
public:
  QuantityKeys() = default;
  QuantityKeys(std::initializer_list<QuantityKey> keys) {
    for (const QuantityKey& key : keys) add(key);
  }

  void add(QuantityKey key) {
    if (covers(key)) return;
    std::erase_if(keys_, [&](const QuantityKey& each) { return key.covers(each); });
    keys_.push_back(std::move(key));
  }
  void add(const QuantityKeys& keys) {
    for (const QuantityKey& key : keys) add(key);
  }
  bool covers(const QuantityKey& key) const {
    return std::ranges::any_of(keys_, [&](const QuantityKey& each) { return each.covers(key); });
  }
  // Those that `held` does not cover.
  QuantityKeys missing_in(const QuantityKeys& held) const {
    QuantityKeys missing;
    for (const QuantityKey& key : keys_)
      if (!held.covers(key)) missing.keys_.push_back(key);
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

// Results by key.
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
  // The result under a key that covers this one; null if there is none.
  template <KeyOfQuantity K>
  const typename K::Result* find(const K& key) const {
    const QuantityKey wanted(key);
    for (const auto& [held, result] : entries_)
      if (held.covers(wanted)) return static_cast<const typename K::Result*>(result.get());
    return nullptr;
  }
  // All of one type, in the order in which they were requested.
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

// The keys for which a kernel runs besides the schedule's: they may fail although the schedule itself runs.
QuantityKeys comparisons_in(const QuantityKeys& keys, const Schedule& schedule);

// The keys that this model has: of a capture those that need no model. `reason`, if given, receives why one
// of the others is not among them.
QuantityKeys keys_of_model(const QuantityKeys& keys, const ModelInfo& model, std::string* reason = nullptr);

// An upper bound of a run's memory in bytes besides the model's: the explicit scores of one layer and the
// quantities, for an input of `tokens` tokens.
double estimated_bytes(const QuantityKeys& quantities, const ModelInfo& model, std::int64_t tokens);

} // namespace hydrascope
