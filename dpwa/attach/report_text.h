#pragma once

#include <nlohmann/json_fwd.hpp>

#include "dpwa/gossip/gossip_state.h"
#include "dpwa/rules/step_report.h"

// What a node process answers its trainer, as JSON. Numbers that are not finite are null.
namespace dpwa::attach {

nlohmann::json number(double value);
double number_in(const nlohmann::json& value);  // null: not a number

nlohmann::json to_json(const StepReport& report);
nlohmann::json to_json(const FinishReport& report);
nlohmann::json to_json(const GossipState& state);

// Throw nlohmann::json::exception when something is missing or of another type.
StepReport step_report_in(const nlohmann::json& text);
FinishReport finish_report_in(const nlohmann::json& text);
GossipState resume_state_in(const nlohmann::json& text);

}  // namespace dpwa::attach
