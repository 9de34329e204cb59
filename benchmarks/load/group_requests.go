package main

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// pipelined are the flags of a load that sends one request over and over.
type pipelined struct {
	*common
	requests, connections, window *int
}

func newPipelined(name string) pipelined {
	c := newCommon(name)
	return pipelined{
		common:      c,
		requests:    c.flags.Int("requests", 60_000, "requests to send in all"),
		connections: c.flags.Int("connections", 8, "TCP connections, each a member of a group of its own"),
		window:      c.flags.Int("window", 32, "requests in flight on a connection"),
	}
}

// runHeartbeats measures what a Heartbeat costs the broker, in groups that are stable.
func runHeartbeats(args []string) (*result, error) {
	p := newPipelined("heartbeats")
	ctx, cancel, err := p.parse(args)
	if err != nil {
		return nil, err
	}
	defer cancel()
	// Length, correlation id, tag section, throttle time.
	const errorAt = 4 + 4 + 1 + 4
	return p.runMembers(ctx, func(m *member, _ int) (kmsg.Request, int) { return m.heartbeatRequest(), errorAt })
}

// runCommits measures what an OffsetCommit of one partition costs the broker, by members of stable groups.
func runCommits(args []string) (*result, error) {
	p := newPipelined("commits")
	ctx, cancel, err := p.parse(args)
	if err != nil {
		return nil, err
	}
	defer cancel()
	cl, err := p.client()
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	if err := p.createTopic(ctx, cl); err != nil {
		return nil, err
	}
	// Length, correlation id, tag section, throttle time; topics' count, name, partitions' count, partition.
	errorAt := 4 + 4 + 1 + 4 + 1 + 1 + len(p.topic) + 1 + 4
	measured, err := p.runMembers(ctx, func(m *member, i int) (kmsg.Request, int) {
		return commitRequest(m, p.topic, []int32{int32(i % p.partitions)}), errorAt
	})
	if err != nil {
		return nil, err
	}
	return measured, p.dropTopic(ctx, cl)
}

// runMembers makes the groups, sends the same request of each member over and over, and takes the groups down.
// requestOf gives the i-th member's request and where the error code stands in its response.
func (p pipelined) runMembers(ctx context.Context, requestOf func(m *member, i int) (kmsg.Request, int)) (*result, error) {
	members := make([]*member, *p.connections)
	pipelines := make([]*pipeline, *p.connections)
	for i := range members {
		m, err := p.newMember(ctx, fmt.Sprintf("%s-%d", p.topic, i))
		if err != nil {
			return nil, err
		}
		defer m.conn.Close()
		if err := m.joinAlone(ctx); err != nil {
			return nil, err
		}
		request, errorAt := requestOf(m, i)
		if err := whenReady(ctx, func() error { return newPipeline(m.conn, request, errorAt).run(1, 1) }); err != nil {
			return nil, err
		}
		members[i], pipelines[i] = m, newPipeline(m.conn, request, errorAt)
	}
	measured, err := p.measure(pipelines)
	if err != nil {
		return nil, err
	}
	for _, m := range members {
		if err := m.leave(m); err != nil {
			return nil, err
		}
		if err := m.deleteGroup(); err != nil {
			return nil, err
		}
	}
	return measured, nil
}

// joinAlone makes the member its group's only one, with an assignment.
func (m *member) joinAlone(ctx context.Context) error {
	for _, step := range []func() error{m.announce, m.join, m.sync} {
		if err := whenReady(ctx, step); err != nil {
			return err
		}
	}
	return nil
}

// commitRequest commits some partitions of a topic, each at its committedOffset.
func commitRequest(m *member, topic string, partitions []int32) *kmsg.OffsetCommitRequest {
	of := kmsg.NewOffsetCommitRequestTopic()
	of.Topic = topic
	for _, index := range partitions {
		partition := kmsg.NewOffsetCommitRequestTopicPartition()
		partition.Partition = index
		partition.Offset = committedOffset(index)
		partition.Metadata = kmsg.StringPtr("")
		of.Partitions = append(of.Partitions, partition)
	}
	request := kmsg.NewPtrOffsetCommitRequest()
	request.SetVersion(offsetCommitVersion)
	request.Group = m.group
	request.Generation = m.generation
	request.MemberID = m.id
	request.Topics = append(request.Topics, of)
	return request
}

// committedOffset is the offset that is committed for a partition: one that can be told from any other's.
func committedOffset(partition int32) int64 { return 1_000_000 + int64(partition) }

// measure sends the requests of all pipelines, a share of them each.
func (p pipelined) measure(pipelines []*pipeline) (*result, error) {
	measuring, err := startSpan(p.pids)
	if err != nil {
		return nil, err
	}
	each := max(*p.requests / *p.connections, 1)
	if err := runAll(pipelines, each, *p.window); err != nil {
		return nil, err
	}
	measured, err := measuring.end(0)
	if err != nil {
		return nil, err
	}
	measured.Requests = each * *p.connections
	return measured, nil
}
