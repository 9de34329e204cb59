package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	consumerHeartbeatVersion = 1
	leaveEpoch               = -1
)

// consumerMember is one member of a consumer group (KIP-848), with a connection of its own. It
// behaves as librdkafka's consumers do: it makes its own id, joins with a full heartbeat, sends
// what is left of one at the interval that the broker names, and after a new assignment says
// at once what it has from now on.
type consumerMember struct {
	conn     net.Conn
	topic    string
	group    string
	id       string
	epoch    int32
	interval time.Duration
	owned    []int32
	seen     *shares
}

func (c *common) newConsumerMember(ctx context.Context, group string, seen *shares) (*consumerMember, error) {
	conn, err := c.dialCoordinator(ctx, group)
	if err != nil {
		return nil, err
	}
	id := make([]byte, 16)
	if _, err := rand.Read(id); err != nil {
		return nil, err
	}
	name := base64.RawURLEncoding.EncodeToString(id)
	return &consumerMember{conn: conn, topic: c.topic, group: group, id: name, seen: seen}, nil
}

// heartbeatRequest says nothing but that the member is there.
func (m *consumerMember) heartbeatRequest() *kmsg.ConsumerGroupHeartbeatRequest {
	request := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	request.SetVersion(consumerHeartbeatVersion)
	request.Group = m.group
	request.MemberID = m.id
	request.MemberEpoch = m.epoch
	request.RebalanceTimeoutMillis = -1
	request.SubscribedTopicNames = nil
	request.Topics = nil
	return request
}

func (m *consumerMember) joinRequest() *kmsg.ConsumerGroupHeartbeatRequest {
	request := m.heartbeatRequest()
	request.RebalanceTimeoutMillis = rebalanceTimeoutMillis
	request.SubscribedTopicNames = []string{m.topic}
	request.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	return request
}

// run joins, and sends heartbeats until it is told to stop.
func (m *consumerMember) run(stop <-chan struct{}) error {
	request := m.joinRequest()
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	for {
		topic, err := m.heartbeat(request)
		if err != nil {
			return fmt.Errorf("member %s in epoch %d: %w", m.id, m.epoch, err)
		}
		request = m.heartbeatRequest()
		pause := m.interval
		if topic != nil {
			request.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{*topic}
			pause = 0
		}
		timer.Reset(pause)
		select {
		case <-stop:
			return nil
		case <-timer.C:
		}
	}
}

// heartbeat sends the request and takes what is answered; it gives what the member has, if that has changed.
func (m *consumerMember) heartbeat(request *kmsg.ConsumerGroupHeartbeatRequest) (*kmsg.ConsumerGroupHeartbeatRequestTopic, error) {
	answer, err := exchange(m.conn, request)
	if err != nil {
		return nil, err
	}
	response := answer.(*kmsg.ConsumerGroupHeartbeatResponse)
	if err := kerr.ErrorForCode(response.ErrorCode); err != nil {
		return nil, err
	}
	m.epoch = response.MemberEpoch
	m.interval = time.Duration(response.HeartbeatIntervalMillis) * time.Millisecond
	if response.Assignment == nil {
		m.seen.is(m, m.owned)
		return nil, nil
	}
	var now []int32
	topic := kmsg.NewConsumerGroupHeartbeatRequestTopic()
	for _, of := range response.Assignment.Topics {
		topic.TopicID = of.TopicID
		now = append(now, of.Partitions...)
	}
	topic.Partitions = now
	m.seen.is(m, now)
	if len(now) == 0 {
		// The first answer of a member for which nothing is free yet.
		return nil, nil
	}
	return &topic, nil
}

func (m *consumerMember) leave() error {
	m.epoch = leaveEpoch
	answer, err := exchange(m.conn, m.heartbeatRequest())
	if err != nil {
		return err
	}
	m.seen.gone(m)
	return kerr.ErrorForCode(answer.(*kmsg.ConsumerGroupHeartbeatResponse).ErrorCode)
}

// shares are what the members of a group have, as they see it themselves.
type shares struct {
	mutex      sync.Mutex
	members    int
	partitions int
	epochs     map[*consumerMember]int32
	owners     map[int32]*consumerMember
	bySize     map[int]int
	byEpoch    map[int32]int
	newest     int32
	stable     chan struct{}
	failure    error
}

func newShares() *shares {
	return &shares{
		epochs: make(map[*consumerMember]int32), owners: make(map[int32]*consumerMember),
		bySize: make(map[int]int), byEpoch: make(map[int32]int),
	}
}

// expect begins to wait for so many members to share so many partitions evenly, all in one epoch beyond the newest one.
func (s *shares) expect(members, partitions int) <-chan struct{} {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.members, s.partitions, s.stable = members, partitions, make(chan struct{})
	return s.stable
}

// is takes note of what a member has from now on.
func (s *shares) is(m *consumerMember, owned []int32) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if before, isKnown := s.epochs[m]; !isKnown || before != m.epoch {
		if isKnown {
			drop(s.byEpoch, before)
		}
		s.byEpoch[m.epoch]++
		s.epochs[m] = m.epoch
		if !isKnown {
			s.bySize[0]++
		}
	}
	s.exchange(m, owned)
	s.newest = max(s.newest, m.epoch)
	if s.stable != nil && s.isStable() {
		close(s.stable)
		s.stable = nil
	}
}

// gone takes note of a member that has left.
func (s *shares) gone(m *consumerMember) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.exchange(m, nil)
	drop(s.bySize, 0)
	drop(s.byEpoch, s.epochs[m])
	delete(s.epochs, m)
}

func (s *shares) exchange(m *consumerMember, owned []int32) {
	drop(s.bySize, len(m.owned))
	for _, partition := range m.owned {
		delete(s.owners, partition)
	}
	for _, partition := range owned {
		if s.owners[partition] != nil {
			s.failure = fmt.Errorf("partition %d has two owners", partition)
		}
		s.owners[partition] = m
	}
	s.bySize[len(owned)]++
	m.owned = owned
}

func (s *shares) isStable() bool {
	if len(s.epochs) != s.members || len(s.owners) != s.partitions || s.byEpoch[s.newest] != s.members {
		return false
	}
	for size := range s.bySize {
		if size != s.partitions/s.members && size != (s.partitions+s.members-1)/s.members {
			return false
		}
	}
	return true
}

func drop[K comparable](counts map[K]int, key K) {
	if counts[key]--; counts[key] == 0 {
		delete(counts, key)
	}
}

// consumerGroup is a group whose members run beside each other.
type consumerGroup struct {
	members []*consumerMember
	seen    *shares
	stops   map[*consumerMember]chan struct{}
	ended   chan error
}

// gather connects the members, and finds the coordinator.
func (c *common) gather(ctx context.Context, group string, size int) (*consumerGroup, error) {
	g := &consumerGroup{seen: newShares(), stops: make(map[*consumerMember]chan struct{}), ended: make(chan error, size)}
	for range size {
		m, err := c.newConsumerMember(ctx, group, g.seen)
		if err != nil {
			return nil, err
		}
		g.members = append(g.members, m)
	}
	// A group is loaded when somebody asks for it; an id that nobody has is refused.
	err := whenReady(ctx, func() error {
		stranger := *g.members[0]
		stranger.epoch = 1
		_, err := stranger.heartbeat(stranger.heartbeatRequest())
		return err
	})
	if !errors.Is(err, kerr.GroupIDNotFound) && !errors.Is(err, kerr.UnknownMemberID) {
		return nil, fmt.Errorf("a heartbeat of nobody was answered %w, and not GROUP_ID_NOT_FOUND", err)
	}
	return g, nil
}

// start has all members join at once.
func (g *consumerGroup) start() {
	for _, m := range g.members {
		stop := make(chan struct{})
		g.stops[m] = stop
		go func() { g.ended <- m.run(stop) }()
	}
}

// wait waits until what is expected has come.
func (g *consumerGroup) wait(ctx context.Context, stable <-chan struct{}) error {
	select {
	case <-stable:
		g.seen.mutex.Lock()
		defer g.seen.mutex.Unlock()
		return g.seen.failure
	case err := <-g.ended:
		return err
	case <-ctx.Done():
		g.seen.mutex.Lock()
		defer g.seen.mutex.Unlock()
		return fmt.Errorf("not stable: %d members in %v, %d partitions, sizes %v", len(g.seen.epochs), g.seen.byEpoch,
			len(g.seen.owners), g.seen.bySize)
	}
}

// halt ends a member's heartbeats.
func (g *consumerGroup) halt(m *consumerMember) error {
	close(g.stops[m])
	delete(g.stops, m)
	return <-g.ended
}

// end has all members leave, and deletes the group.
func (g *consumerGroup) end() error {
	for _, m := range g.members {
		if g.stops[m] != nil {
			if err := g.halt(m); err != nil {
				return err
			}
		}
	}
	for _, m := range g.members {
		if m.epoch != leaveEpoch {
			if err := m.leave(); err != nil {
				return err
			}
		}
	}
	last := &member{conn: g.members[0].conn, group: g.members[0].group}
	return last.deleteGroup()
}

func (g *consumerGroup) close() {
	for _, m := range g.members {
		m.conn.Close()
	}
}
