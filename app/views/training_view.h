// A training as it is drawn and told. Plain header.
#pragma once

#include <string>

#include "app/views/training_report.h"
#include "engine/figures/figure.h"

namespace hydrascope::app {

// "4:05" or "1:04:05".
std::string duration_text(double seconds);
// "distilling hedgehog into bert-base"
std::string training_title(const TrainingReport& report);
// "epoch 2 of 5, step 120 of 176, 31.2 items/s, 4:05 left"; while it is not between two steps, what it does.
std::string training_progress_text(const TrainingReport& report);
double training_share(const TrainingReport& report); // of all steps, 0…1
// What came of it; empty as long as it is under way.
std::string training_result_text(const TrainingReport& report);

// Loss by step beside the KL of each layer (distillation) or the held-out accuracy (fine-tuning); held-out
// numbers are points. No panels before the first step.
Figure training_figure(const TrainingReport& report);

} // namespace hydrascope::app
