#include "engine/training/tasks/frozen_features.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <latch>
#include <limits>
#include <stop_token>
#include <string>
#include <thread>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/allclose.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/base/image.h"
#include "engine/base/paths.h"
#include "engine/models/transformer/model.h"
#include "engine/run/model_store.h"
#include "engine/training/data/labelled_files.h"
#include "engine/training/loop/prepared_model.h"
#include "tests/engine/training/toy.h"

namespace hydrascope {
namespace {

namespace fs = std::filesystem;

using testing::toy_finetuning;
using testing::ToyFolder;

training::Features features_of(const FinetuneRequest& request, const int layer, const int copies,
                               const TrainingObserver& observer, const std::stop_token& stop = {}) {
  const auto prepared = training::prepare_model(*make_model_store(), request.settings.model_folder,
                                                request.settings.adapters, {}, {}, true);
  const std::filesystem::path& data = request.data.front();
  const auto pictures = training::list_image_folder(data, training::class_folders(data), 0);
  training::FeatureRequest wanted;
  wanted.layer = layer;
  wanted.image_size = 28;
  wanted.copies = copies;
  wanted.batch = 8;
  wanted.pictures_a_piece = 8;
  return training::cached_features(prepared, pictures, wanted, observer, stop);
}

training::Features features_of(const FinetuneRequest& request, const int layer, const int copies,
                               int* computed) {
  return features_of(request, layer, copies, [&](const TrainingProgress&) { ++*computed; });
}

class FeatureCache : public ::testing::Test {
protected:
  // Layer 2's, two crops of each, from a cache that is gone afterwards.
  at::Tensor made_and_removed(int* computed) {
    const at::Tensor features = features_of(request, 2, 2, computed).hidden.clone();
    std::filesystem::remove_all(folder / "cache");
    return features;
  }

  const ToyFolder folder;
  const FinetuneRequest request = toy_finetuning(folder);
};

// A state that is damaged, or does not fit the data beside it, is not believed: the features are made again.
TEST_F(FeatureCache, ADamagedStateIsNotBelieved) {
  int computed = 0;
  const at::Tensor expected = features_of(request, 2, 2, &computed).hidden.clone();
  fs::path state, data;
  for (const auto& entry : fs::directory_iterator(folder / "cache/hydrascope/features")) {
    if (entry.path().extension() == ".json") state = entry.path();
    if (entry.path().extension() == ".half") data = entry.path();
  }
  const std::string good = read_text_file(state);
  const auto with = [&](const std::string& name, const nlohmann::json& value) {
    auto changed = nlohmann::json::parse(good);
    changed[name] = value;
    return changed.dump();
  };
  for (const std::string& bad :
       {with("skipped", {{1'000'000, "no picture has this number"}}), with("skipped", {{-1, "nor this"}}),
        with("width", 1 << 30), with("rows", -2), with("columns", 30'000), with("width", "24"),
        std::string(100'000, '['), std::string()}) {
    SCOPED_TRACE(bad.substr(0, 200));
    write_file_atomically(state, bad);
    computed = 0;
    EXPECT_TRUE(features_of(request, 2, 2, &computed).hidden.equal(expected));
    EXPECT_GT(computed, 0);
  }
  fs::resize_file(data, 100);
  computed = 0;
  EXPECT_TRUE(features_of(request, 2, 2, &computed).hidden.equal(expected));
  EXPECT_GT(computed, 0);
}

TEST_F(FeatureCache, IsFilledOnceAndServesLaterLayers) {
  int computed = 0;
  const auto direct = features_of(request, 2, 2, &computed);
  EXPECT_GT(computed, 0);
  EXPECT_EQ(direct.hidden.sizes(), (std::vector<std::int64_t>{72, 5, 24}));
  computed = 0;
  const auto again = features_of(request, 2, 2, &computed);
  EXPECT_EQ(computed, 0);
  EXPECT_TRUE(again.hidden.equal(direct.hidden));
  EXPECT_FALSE(direct.hidden[0].equal(direct.hidden[1])); // the second copy is another crop

  // The first picture by itself, block by block.
  const at::NoGradGuard no_gradients;
  const auto model = load_model(request.settings.model_folder);
  const ModelInput input = model->prepare_image(load_image(request.data.front() / "blue" / "0.ppm"), 28);
  at::Tensor hidden = model->embed(input);
  for (int layer = 0; layer < 2; ++layer)
    hidden = model->block(layer, hidden, input, *make_kernel({}), {}, {});
  EXPECT_LT((direct.hidden[0].to(at::kFloat) - hidden[0]).abs().max().item<double>(),
            0.01 * hidden.abs().max().item<double>());

  const auto reference = direct.hidden.clone();
  std::filesystem::remove_all(folder / "cache");
  features_of(request, 1, 2, &computed);
  const auto from_earlier = features_of(request, 2, 2, &computed);
  const double scale = reference.abs().max().item<double>();
  EXPECT_LT((from_earlier.hidden.to(at::kFloat) - reference.to(at::kFloat)).abs().max().item<double>(),
            0.01 * scale);
}

TEST_F(FeatureCache, IsMadeAgainWhenAPictureChanges) {
  int computed = 0;
  features_of(request, 1, 1, &computed);
  std::filesystem::last_write_time(request.data.front() / "red" / "0.ppm",
                                   std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  computed = 0;
  features_of(request, 1, 1, &computed);
  EXPECT_GT(computed, 0);
}

TEST_F(FeatureCache, IsMadeAgainWhenPicturesArePreparedInAnotherWay) {
  int computed = 0;
  const at::Tensor before = features_of(request, 1, 1, &computed).hidden.clone();
  std::ofstream(request.settings.model_folder / "preprocessor_config.json") << R"({
    "image_processor_type": "BitImageProcessor", "do_resize": true, "size": {"shortest_edge": 36}, "do_center_crop": true,
    "crop_size": {"height": 28, "width": 28}, "resample": 3, "do_rescale": true,
    "rescale_factor": 0.00392156862745098, "do_normalize": true,
    "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]})";
  computed = 0;
  EXPECT_FALSE(features_of(request, 1, 1, &computed).hidden.equal(before));
  EXPECT_GT(computed, 0);
}

// Its metadata name the layers alone.
TEST_F(FeatureCache, IsMadeAgainForAnAdapterThatTrainedTheEmbeddings) {
  int computed = 0;
  const at::Tensor of_base = features_of(request, 1, 1, &computed).hidden.clone();
  const auto after_training = [&](const bool embeddings) {
    FinetuneRequest tuning = request;
    tuning.settings.epochs = 1;
    tuning.trained->embeddings = embeddings;
    tuning.settings.adapters.files = {finetune(tuning).adapter.path};
    computed = 0;
    return features_of(tuning, 1, 1, &computed).hidden.clone();
  };
  EXPECT_TRUE(after_training(false).equal(of_base));
  EXPECT_EQ(computed, 0) << "layer 1 and the classifier do not change what enters layer 1";
  EXPECT_FALSE(after_training(true).equal(of_base));
  EXPECT_GT(computed, 0);
}

TEST_F(FeatureCache, IsFilledBySeveralAtOnce) {
  int alone = 0;
  const at::Tensor reference = made_and_removed(&alone);

  // One computes its first piece until the other has computed one, too.
  std::latch both(2);
  const auto join_in = [&](int* computed) {
    return std::async(std::launch::async, [this, &both, computed] {
      return features_of(request, 2, 2, [&both, computed](const TrainingProgress&) {
        if (++*computed == 1) both.arrive_and_wait();
      });
    });
  };
  int first = 0, second = 0;
  auto one = join_in(&first), other = join_in(&second);
  EXPECT_TRUE(one.get().hidden.equal(reference));
  EXPECT_TRUE(other.get().hidden.equal(reference));
  EXPECT_EQ(first + second, alone);
}

TEST_F(FeatureCache, GoesOnWhereItWasStopped) {
  int alone = 0;
  const at::Tensor reference = made_and_removed(&alone);

  std::stop_source stop;
  int before = 0, after = 0;
  const auto stopped = features_of(
      request, 2, 2,
      [&](const TrainingProgress&) {
        if (++before == 3) stop.request_stop(); // in the midst of the second piece
      },
      stop.get_token());
  EXPECT_FALSE(stopped.complete);
  EXPECT_TRUE(features_of(request, 2, 2, &after).hidden.equal(reference));
  EXPECT_EQ(after, alone - 2); // the first piece's two batches were kept
}

// More copies than could ever be made.
TEST_F(FeatureCache, StopsAmongTheCopiesOfAPicture) {
  std::stop_source stop;
  const std::jthread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300)); // after the first copies
    stop.request_stop();
  });
  EXPECT_FALSE(features_of(request, 1, std::numeric_limits<int>::max(), {}, stop.get_token()).complete);
}

// They run in several batches.
TEST_F(FeatureCache, ManyCopiesOfAPictureAreThoseOfFewer) {
  int computed = 0;
  const at::Tensor few = features_of(request, 2, 2, &computed).hidden.clone(),
                   many = features_of(request, 2, 19, &computed).hidden.clone();
  ASSERT_EQ(many.size(0), 36 * 19);
  const at::Tensor first = many.unflatten(0, {36, 19}).slice(1, 0, 2).flatten(0, 1);
  EXPECT_LT((first - few).abs().max().item<double>(), 0.01 * few.abs().max().item<double>());
  std::filesystem::remove_all(folder / "cache");
  features_of(request, 1, 19, &computed);
  EXPECT_LT((features_of(request, 2, 19, &computed).hidden - many).abs().max().item<double>(),
            0.01 * many.abs().max().item<double>());
}

// A file that is missing stands for one that may not be opened, which root may.
TEST_F(FeatureCache, DoesNotSkipForEverWhatCannotBeOpenedOnce) {
  const auto last = request.data.front() / "red" / "9.ppm", away = folder / "away.ppm";
  const auto take_away = [&](const TrainingProgress&) {
    if (std::filesystem::exists(last)) std::filesystem::rename(last, away);
  };
  EXPECT_THROW(features_of(request, 1, 1, take_away), Error);
  std::filesystem::rename(away, last);
  int computed = 0;
  const auto features = features_of(request, 1, 1, &computed);
  EXPECT_EQ(std::ranges::count(features.usable, true), 36);
  EXPECT_LT(computed, 5) << "the pieces before it were kept";
}

TEST_F(FeatureCache, SkipsWhatCannotBeDecoded) {
  int computed = 0;
  const at::Tensor all = features_of(request, 1, 1, &computed).hidden.clone();
  std::ofstream(request.data.front() / "red" / "0.ppm") << "not a picture";
  for (const int layer : {1, 2}) { // from pictures, then from the earlier layer
    const auto features = features_of(request, layer, 1, &computed);
    EXPECT_EQ(std::ranges::count(features.usable, false), 1);
    ASSERT_EQ(features.notes.size(), 1U);
    EXPECT_NE(features.notes[0].find("0.ppm"), std::string::npos) << features.notes[0];
    if (layer > 1) continue;
    for (std::int64_t i = 0; i < all.size(0); ++i) {
      if (!features.usable[static_cast<std::size_t>(i)]) continue;
      EXPECT_TRUE(features.hidden[i].allclose(all[i], 1e-2, 1e-2));
    }
  }
}

} // namespace
} // namespace hydrascope
