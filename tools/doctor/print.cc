// The output of `leeway doctor` as text and JSON.
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/doctor/findings.h"
#include "tools/format/text_table.h"
#include "van/rdma/verbs/inventory.h"

namespace leeway::tools {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson PortJson(const van::verbs::FoundPort& port) {
  OrderedJson gids = OrderedJson::array();
  for (const van::verbs::FoundGid& gid : port.gids) {
    gids.push_back(
        {{"index", gid.index}, {"gid", gid.gid}, {"type", gid.type}, {"card", gid.card}});
  }
  return {{"port", port.number},         {"up", port.up},
          {"state", port.state},         {"link", port.link},
          {"mtu_bytes", port.mtu_bytes}, {"gids", gids}};
}

OrderedJson DevicesJson(const van::verbs::Inventory& inventory) {
  OrderedJson devices = OrderedJson::array();
  for (const van::verbs::FoundDevice& device : inventory.devices) {
    OrderedJson ports = OrderedJson::array();
    for (const van::verbs::FoundPort& port : device.ports) ports.push_back(PortJson(port));
    devices.push_back({{"name", device.name}, {"ports", ports}});
  }
  return devices;
}

OrderedJson ChoiceJson(const Choice& choice) {
  return {{"transport", choice.transport}, {"why", choice.why}};
}

}  // namespace

std::string DoctorText(const std::vector<Finding>& findings) {
  std::vector<std::vector<std::string>> rows;
  for (const Finding& finding : findings) {
    rows.push_back({NameOf(finding.mark), finding.what, finding.found});
  }
  const std::string table = TextTable(rows, /*left=*/3);
  const std::vector<std::string> lines = absl::StrSplit(table, '\n');
  std::string text;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    absl::StrAppend(&text, absl::StripTrailingAsciiWhitespace(lines[i]), "\n");
    if (!findings[i].mend.empty()) absl::StrAppend(&text, "      mend: ", findings[i].mend, "\n");
  }
  return text;
}

std::string DoctorJson(const DoctorFacts& facts, const std::vector<Finding>& findings) {
  OrderedJson listed = OrderedJson::array();
  for (const Finding& finding : findings) {
    listed.push_back({{"mark", NameOf(finding.mark)},
                      {"what", finding.what},
                      {"found", finding.found},
                      {"mend", finding.mend}});
  }
  OrderedJson locked;  // null: no limit
  if (facts.locked_bytes != van::verbs::kNoLimit) locked = facts.locked_bytes;
  const OrderedJson all = {{"van", facts.config.van},
                           {"this_machine", ChoiceJson(OnThisMachine(facts))},
                           {"other_machines", ChoiceJson(OnOthers(facts))},
                           {"address", facts.address},
                           {"shared_memory", facts.shm.ok()},
                           {"rdma", facts.rdma_usable.ok()},
                           {"rdma_devices", DevicesJson(facts.rdma)},
                           {"locked_bytes_max", locked},
                           {"descriptors_max", facts.descriptors},
                           {"findings", listed}};
  return all.dump(2, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace leeway::tools
