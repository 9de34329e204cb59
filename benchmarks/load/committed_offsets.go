package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// offsetLoad are the flags of the two loads of many groups' offsets: commit-offsets, and,
// once the broker has been restarted, fetch-offsets. Nobody is in the groups: these are
// what consumers have that assign themselves their partitions.
type offsetLoad struct {
	*common
	prefix              *string
	groups, connections *int
}

func newOffsetLoad(name string) offsetLoad {
	c := newCommon(name)
	return offsetLoad{
		common:      c,
		prefix:      c.flags.String("prefix", "offsets", "of the groups' names"),
		groups:      c.flags.Int("groups", 1_000, "groups, each with an offset for every partition"),
		connections: c.flags.Int("connections", 8, "TCP connections, each with one request in flight"),
	}
}

// runCommitOffsets measures how fast a broker accepts offsets: a group's are one request.
func runCommitOffsets(args []string) (*result, error) {
	o := newOffsetLoad("commit-offsets")
	ctx, cancel, err := o.parse(args)
	if err != nil {
		return nil, err
	}
	defer cancel()
	cl, err := o.client()
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	if err := o.createTopic(ctx, cl); err != nil {
		return nil, err
	}
	conn, err := o.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if _, err := findCoordinator(ctx, conn, *o.prefix); err != nil {
		return nil, err
	}
	partitions := make([]int32, o.partitions)
	for i := range partitions {
		partitions[i] = int32(i)
	}
	measuring, err := startSpan(o.pids)
	if err != nil {
		return nil, err
	}
	if err := o.eachGroup(ctx, func(conn net.Conn, group string) error {
		return commitAll(conn, commitRequest(&member{group: group, generation: -1}, o.topic, partitions))
	}); err != nil {
		return nil, err
	}
	return measuring.end(*o.groups * o.partitions)
}

// runFetchOffsets tells, by printing its result, when a broker that is starting has answered
// with all offsets of all groups that commit-offsets committed. Started before the broker, it
// reads the address from its standard input when -broker is empty.
func runFetchOffsets(args []string) (*result, error) {
	o := newOffsetLoad("fetch-offsets")
	ctx, cancel, err := o.parse(args)
	if err != nil {
		return nil, err
	}
	defer cancel()
	if err := o.readBroker(); err != nil {
		return nil, err
	}
	begin := time.Now()
	if err := o.eachGroup(ctx, func(conn net.Conn, group string) error {
		return fetchAll(conn, group, o.partitions)
	}); err != nil {
		return nil, err
	}
	return &result{Records: *o.groups * o.partitions, Seconds: time.Since(begin).Seconds()}, nil
}

// eachGroup asks something once for every group, on several connections, again where the broker is not there yet.
func (o offsetLoad) eachGroup(ctx context.Context, ask func(conn net.Conn, group string) error) error {
	done := make(chan error, *o.connections)
	for first := range *o.connections {
		go func() { done <- o.everyNth(ctx, first, ask) }()
	}
	for range *o.connections {
		if err := <-done; err != nil {
			return err
		}
	}
	return nil
}

func (o offsetLoad) everyNth(ctx context.Context, first int, ask func(conn net.Conn, group string) error) error {
	conn, err := o.dialPatiently(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	for i := first; i < *o.groups; i += *o.connections {
		group := fmt.Sprintf("%s-%d", *o.prefix, i)
		if err := whenReady(ctx, func() error { return ask(conn, group) }); err != nil {
			return fmt.Errorf("group %s: %w", group, err)
		}
	}
	return nil
}

// dialPatiently dials until somebody listens.
func (o offsetLoad) dialPatiently(ctx context.Context) (net.Conn, error) {
	for {
		conn, err := o.dial(ctx)
		if err == nil || ctx.Err() != nil {
			return conn, err
		}
		time.Sleep(retryEvery)
	}
}

func commitAll(conn net.Conn, request *kmsg.OffsetCommitRequest) error {
	response, err := exchange(conn, request)
	if err != nil {
		return err
	}
	for _, topic := range response.(*kmsg.OffsetCommitResponse).Topics {
		for _, partition := range topic.Partitions {
			if err := kerr.ErrorForCode(partition.ErrorCode); err != nil {
				return err
			}
		}
	}
	return nil
}

var errOffsetsLost = errors.New("offsets that were committed are not there")

// fetchAll fetches all that a group has committed, and checks that this is every partition of one topic.
func fetchAll(conn net.Conn, group string, partitions int) error {
	of := kmsg.NewOffsetFetchRequestGroup()
	of.Group = group
	request := kmsg.NewPtrOffsetFetchRequest()
	request.SetVersion(offsetFetchVersion)
	request.Groups = append(request.Groups, of)
	response, err := exchange(conn, request)
	if err != nil {
		return err
	}
	got := response.(*kmsg.OffsetFetchResponse).Groups[0]
	if err := kerr.ErrorForCode(got.ErrorCode); err != nil {
		return err
	}
	if len(got.Topics) != 1 || len(got.Topics[0].Partitions) != partitions {
		return fmt.Errorf("%w: %d topics", errOffsetsLost, len(got.Topics))
	}
	for _, partition := range got.Topics[0].Partitions {
		if partition.ErrorCode != 0 || partition.Offset != committedOffset(partition.Partition) {
			return fmt.Errorf("%w: partition %d has offset %d, error %d",
				errOffsetsLost, partition.Partition, partition.Offset, partition.ErrorCode)
		}
	}
	return nil
}
