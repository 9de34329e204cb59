package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The newest versions of the classic protocol, which is what clients of today speak.
const (
	findCoordinatorVersion = 4
	joinGroupVersion       = 9
	syncGroupVersion       = 5
	heartbeatVersion       = 4
	leaveGroupVersion      = 5
	deleteGroupsVersion    = 2
	offsetCommitVersion    = 9
	offsetFetchVersion     = 9
)

const (
	sessionTimeoutMillis   = 45_000
	rebalanceTimeoutMillis = 60_000
	protocolType           = "consumer"
	assignor               = "range"
)

// member is one member of a classic group, with a connection of its own: a join
// waits for others, and a broker serves a connection one request at a time.
type member struct {
	conn       net.Conn
	topic      string
	group      string
	id         string
	generation int32
	// others are the ids of all the generation's members, for the member that leads it; else nil.
	others []string
}

// newMember finds the group's coordinator as a client does first, and connects to it.
func (c *common) newMember(ctx context.Context, group string) (*member, error) {
	conn, err := c.dialCoordinator(ctx, group)
	if err != nil {
		return nil, err
	}
	return &member{conn: conn, topic: c.topic, group: group}, nil
}

// dialCoordinator connects to the group's coordinator: over the connection on which it was
// asked for, if that broker is it.
func (c *common) dialCoordinator(ctx context.Context, group string) (net.Conn, error) {
	conn, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	address, err := findCoordinator(ctx, conn, group)
	if err != nil || address == c.first() {
		return conn, err
	}
	conn.Close()
	return c.dialTo(ctx, address)
}

// findCoordinator waits until the group's coordinator is known, and tells its address; the
// first time a broker is asked, it makes the topic that groups are kept in.
func findCoordinator(ctx context.Context, conn net.Conn, group string) (string, error) {
	var address string
	err := whenReady(ctx, func() error {
		request := kmsg.NewPtrFindCoordinatorRequest()
		request.SetVersion(findCoordinatorVersion)
		request.CoordinatorKeys = []string{group}
		response, err := exchange(conn, request)
		if err != nil {
			return err
		}
		found := response.(*kmsg.FindCoordinatorResponse).Coordinators[0]
		address = net.JoinHostPort(found.Host, strconv.Itoa(int(found.Port)))
		return kerr.ErrorForCode(found.ErrorCode)
	})
	return address, err
}

// whenReady asks again until the coordinator is there and has loaded, and a topic just made is known.
func whenReady(ctx context.Context, ask func() error) error {
	for {
		err := ask()
		if !errors.Is(err, kerr.CoordinatorLoadInProgress) && !errors.Is(err, kerr.CoordinatorNotAvailable) &&
			!errors.Is(err, kerr.NotCoordinator) && !errors.Is(err, kerr.UnknownTopicOrPartition) {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("still not ready: %w", err)
		}
		time.Sleep(retryEvery)
	}
}

// announce is a member's first JoinGroup, which brings it an id to come back with (KIP-394).
func (m *member) announce() error {
	err := m.join()
	if errors.Is(err, kerr.MemberIDRequired) {
		return nil
	}
	return fmt.Errorf("a first join was answered %w, and not MEMBER_ID_REQUIRED", err)
}

// join waits for the group's next generation.
func (m *member) join() error {
	metadata := kmsg.NewConsumerMemberMetadata()
	metadata.Topics = []string{m.topic}
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name = assignor
	protocol.Metadata = metadata.AppendTo(nil)
	request := kmsg.NewPtrJoinGroupRequest()
	request.SetVersion(joinGroupVersion)
	request.Group = m.group
	request.SessionTimeoutMillis = sessionTimeoutMillis
	request.RebalanceTimeoutMillis = rebalanceTimeoutMillis
	request.MemberID = m.id
	request.ProtocolType = protocolType
	request.Protocols = append(request.Protocols, protocol)
	response, err := exchange(m.conn, request)
	if err != nil {
		return err
	}
	joined := response.(*kmsg.JoinGroupResponse)
	m.id, m.generation, m.others = joined.MemberID, joined.Generation, nil
	if joined.LeaderID == m.id {
		for _, other := range joined.Members {
			m.others = append(m.others, other.MemberID)
		}
	}
	return kerr.ErrorForCode(joined.ErrorCode)
}

// sync waits for the member's assignment; the leader brings everybody's, a partition each.
func (m *member) sync() error {
	request := kmsg.NewPtrSyncGroupRequest()
	request.SetVersion(syncGroupVersion)
	request.Group = m.group
	request.Generation = m.generation
	request.MemberID = m.id
	request.ProtocolType = kmsg.StringPtr(protocolType)
	request.Protocol = kmsg.StringPtr(assignor)
	for partition, other := range m.others {
		topic := kmsg.NewConsumerMemberAssignmentTopic()
		topic.Topic = m.topic
		topic.Partitions = []int32{int32(partition)}
		assignment := kmsg.NewConsumerMemberAssignment()
		assignment.Topics = append(assignment.Topics, topic)
		of := kmsg.NewSyncGroupRequestGroupAssignment()
		of.MemberID = other
		of.MemberAssignment = assignment.AppendTo(nil)
		request.GroupAssignment = append(request.GroupAssignment, of)
	}
	response, err := exchange(m.conn, request)
	if err != nil {
		return err
	}
	synced := response.(*kmsg.SyncGroupResponse)
	if synced.ErrorCode == 0 && len(synced.MemberAssignment) == 0 {
		return fmt.Errorf("member %s was assigned nothing", m.id)
	}
	return kerr.ErrorForCode(synced.ErrorCode)
}

func (m *member) heartbeatRequest() *kmsg.HeartbeatRequest {
	request := kmsg.NewPtrHeartbeatRequest()
	request.SetVersion(heartbeatVersion)
	request.Group = m.group
	request.Generation = m.generation
	request.MemberID = m.id
	return request
}

// awaitLoaded waits until the coordinator has loaded the member's group, or knows that there is nothing to load.
func (m *member) awaitLoaded(ctx context.Context) error {
	err := whenReady(ctx, m.heartbeat)
	if errors.Is(err, kerr.UnknownMemberID) {
		return nil
	}
	return fmt.Errorf("a heartbeat of nobody was answered %w, and not UNKNOWN_MEMBER_ID", err)
}

func (m *member) heartbeat() error {
	response, err := exchange(m.conn, m.heartbeatRequest())
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(response.(*kmsg.HeartbeatResponse).ErrorCode)
}

// awaitRebalance sends heartbeats until one says that the member is to join again.
func (m *member) awaitRebalance() error {
	for {
		err := m.heartbeat()
		if errors.Is(err, kerr.RebalanceInProgress) {
			return nil
		}
		if err != nil {
			return err
		}
		time.Sleep(retryEvery)
	}
}

// leave takes the given members out of the group, in one request.
func (m *member) leave(leavers ...*member) error {
	request := kmsg.NewPtrLeaveGroupRequest()
	request.SetVersion(leaveGroupVersion)
	request.Group = m.group
	for _, leaver := range leavers {
		of := kmsg.NewLeaveGroupRequestMember()
		of.MemberID = leaver.id
		request.Members = append(request.Members, of)
	}
	response, err := exchange(m.conn, request)
	if err != nil {
		return err
	}
	left := response.(*kmsg.LeaveGroupResponse)
	for _, of := range left.Members {
		if of.ErrorCode != 0 {
			return kerr.ErrorForCode(of.ErrorCode)
		}
	}
	return kerr.ErrorForCode(left.ErrorCode)
}

// deleteGroup deletes the member's group, which nobody may be in any more.
func (m *member) deleteGroup() error {
	request := kmsg.NewPtrDeleteGroupsRequest()
	request.SetVersion(deleteGroupsVersion)
	request.Groups = []string{m.group}
	response, err := exchange(m.conn, request)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(response.(*kmsg.DeleteGroupsResponse).Groups[0].ErrorCode)
}
