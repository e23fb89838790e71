// The scheduler's services, as its message dispatcher, recovery, end, members and status see them.
// The scheduler owns them all and fills this in; none is null.
#ifndef LEEWAY_SCHEDULER_CONTROL_SERVICES_H_
#define LEEWAY_SCHEDULER_CONTROL_SERVICES_H_

#include "leeway/config.h"
#include "runtime/loop/loop.h"
#include "scheduler/admin/admin_service.h"
#include "scheduler/chains/chain_controller.h"
#include "scheduler/checkpoints/checkpoints.h"
#include "scheduler/checkpoints/restoration.h"
#include "scheduler/control/protocol_errors.h"
#include "scheduler/maps/cluster_maps.h"
#include "scheduler/members/barriers.h"
#include "scheduler/members/cluster_life.h"
#include "scheduler/members/liveness.h"
#include "scheduler/members/membership_table.h"
#include "scheduler/members/node_sender.h"
#include "scheduler/publications/publications.h"
#include "scheduler/tables/codec_service.h"
#include "scheduler/tables/table_service.h"
#include "van/van.h"

namespace leeway::scheduler {

class ClusterEnd;
class MemberService;
class Recovery;

struct Services {
  const Config* config;
  runtime::Host* host;
  runtime::Loop* loop;
  van::Identity* identity;  // the scheduler's
  MembershipTable* members;
  NodeSender* sender;
  Liveness* liveness;
  ClusterMaps* maps;
  Barriers* barriers;
  TableService* tables;
  CodecService* codecs;
  ChainController* chains;
  Checkpoints* checkpoints;
  Restoration* restoration;
  Publications* publications;
  AdminService* admin;
  ProtocolErrors* errors;
  ClusterLife* life;
  MemberService* member_service;
  Recovery* recovery;
  ClusterEnd* end;

  absl::Time Now() const { return loop->Now(); }
};

// The sender of a message: its connection, and its node, if it has joined.
struct Sender {
  van::PeerId peer;
  van::Identity identity;
  Node* node;
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_CONTROL_SERVICES_H_
