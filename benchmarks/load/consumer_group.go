package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The steps of a consumer group's life that are timed, in their order.
const (
	stepStart = "start"
	stepLess  = "less"
	stepGrow  = "grow"
	stepGrown = "grown"
)

// How often a broker is asked whether it serves all partitions of a topic.
const askServedEvery = 100 * time.Millisecond

const listOffsetsVersion = 7

// runConsumerGroup measures a consumer group of -members members, each on a connection of
// its own, on a topic with a partition for each, -groups times over, and gives each step's median:
//
//	start   all members join
//	less    one member leaves
//	grown   the topic gets twice the partitions
//
// each until the members share all partitions evenly, all in one epoch. Beside the last one is told
// how long it took until the broker served all partitions (grow), which a group may have to wait for.
// Connecting, making the topic and taking the group down are outside.
func runConsumerGroup(args []string) (*result, error) {
	c := newCommon("consumer-group")
	size := c.flags.Int("members", 500, "members of a group")
	groups := c.flags.Int("groups", 1, "groups, one after the other")
	ctx, cancel, err := c.parse(args)
	if err != nil {
		return nil, err
	}
	defer cancel()
	c.partitions = *size
	took := make(map[string][]time.Duration)
	whole := &result{Groups: *groups, StepsMs: make(map[string]float64)}
	for i := range *groups {
		measured, err := c.consumerGroupOnce(ctx, fmt.Sprintf("%s-%d", c.topic, i), *size, took)
		if err != nil {
			return nil, fmt.Errorf("group %d of %d: %w", i+1, *groups, err)
		}
		whole.add(measured)
	}
	for step, durations := range took {
		slices.Sort(durations)
		whole.StepsMs[step] = float64(durations[len(durations)/2]) / float64(time.Millisecond)
	}
	return whole, nil
}

// consumerGroupOnce takes one group through all steps, noting how long each took.
func (c *common) consumerGroupOnce(
	ctx context.Context, name string, size int, took map[string][]time.Duration,
) (measured *result, err error) {
	cl, err := c.client()
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	if err := c.createTopic(ctx, cl); err != nil {
		return nil, err
	}
	if err := c.awaitServed(ctx, size); err != nil {
		return nil, err
	}
	g, err := c.gather(ctx, name, size)
	if err != nil {
		return nil, err
	}
	defer g.close()
	measuring, err := startSpan(c.pids)
	if err != nil {
		return nil, err
	}
	timed := func(step string, run func() error) {
		begin := time.Now()
		if err == nil {
			if err = run(); err != nil {
				err = fmt.Errorf("%s: %w", step, err)
			}
		}
		took[step] = append(took[step], time.Since(begin))
	}
	timed(stepStart, func() error {
		stable := g.seen.expect(size, size)
		g.start()
		return g.wait(ctx, stable)
	})
	timed(stepLess, func() error {
		if err := g.halt(g.members[size/2]); err != nil {
			return err
		}
		stable := g.seen.expect(size-1, size)
		if err := g.members[size/2].leave(); err != nil {
			return err
		}
		return g.wait(ctx, stable)
	})
	served := make(chan error, 1)
	var grew time.Duration
	timed(stepGrown, func() error {
		stable := g.seen.expect(size-1, 2*size)
		begin := time.Now()
		go func() {
			err := c.awaitServed(ctx, 2*size)
			grew = time.Since(begin)
			served <- err
		}()
		if err := c.growTopic(ctx, cl, 2*size); err != nil {
			return err
		}
		return g.wait(ctx, stable)
	})
	if err != nil {
		return nil, err
	}
	if err := <-served; err != nil {
		return nil, err
	}
	took[stepGrow] = append(took[stepGrow], grew)
	if measured, err = measuring.end(0); err != nil {
		return nil, err
	}
	if err := g.end(); err != nil {
		return nil, err
	}
	return measured, c.dropTopic(ctx, cl)
}

// growTopic lets the topic have so many partitions.
func (c *common) growTopic(ctx context.Context, cl *kgo.Client, count int) error {
	topic := kmsg.NewCreatePartitionsRequestTopic()
	topic.Topic = c.topic
	topic.Count = int32(count)
	request := kmsg.NewPtrCreatePartitionsRequest()
	request.Topics = append(request.Topics, topic)
	request.TimeoutMillis = 10_000
	response, err := request.RequestWith(ctx, cl)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(response.Topics[0].ErrorCode)
}

// awaitServed waits until the broker serves so many partitions of the topic: it may tell of them before they are there.
func (c *common) awaitServed(ctx context.Context, partitions int) error {
	conn, err := c.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	of := kmsg.NewListOffsetsRequestTopic()
	of.Topic = c.topic
	for index := range partitions {
		partition := kmsg.NewListOffsetsRequestTopicPartition()
		partition.Partition = int32(index)
		partition.Timestamp = -1
		of.Partitions = append(of.Partitions, partition)
	}
	request := kmsg.NewPtrListOffsetsRequest()
	request.SetVersion(listOffsetsVersion)
	request.ReplicaID = -1
	request.Topics = append(request.Topics, of)
	for ctx.Err() == nil {
		response, err := exchange(conn, request)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(response.(*kmsg.ListOffsetsResponse).Topics[0].Partitions, isRefused) {
			return nil
		}
		time.Sleep(askServedEvery)
	}
	return fmt.Errorf("not all of %d partitions are served: %w", partitions, ctx.Err())
}

func isRefused(partition kmsg.ListOffsetsResponseTopicPartition) bool {
	return partition.ErrorCode != 0
}

// runConsumerHeartbeats measures what a ConsumerGroupHeartbeat costs the broker that changes nothing, in one group of many
// members, who share connections.
func runConsumerHeartbeats(args []string) (*result, error) {
	p := newPipelined("consumer-heartbeats")
	size := p.flags.Int("members", 500, "members of the group")
	ctx, cancel, err := p.parse(args)
	if err != nil {
		return nil, err
	}
	defer cancel()
	p.common.partitions = *size
	cl, err := p.client()
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	if err := p.createTopic(ctx, cl); err != nil {
		return nil, err
	}
	if err := p.awaitServed(ctx, *size); err != nil {
		return nil, err
	}
	g, err := p.gather(ctx, p.topic, *size)
	if err != nil {
		return nil, err
	}
	defer g.close()
	stable := g.seen.expect(*size, *size)
	g.start()
	if err := g.wait(ctx, stable); err != nil {
		return nil, err
	}
	for _, m := range g.members {
		if err := g.halt(m); err != nil {
			return nil, err
		}
	}
	// Length, correlation id, tag section, throttle time.
	const errorAt = 4 + 4 + 1 + 4
	pipelines := make([]*pipeline, *p.connections)
	for i := range pipelines {
		requests := make([]kmsg.Request, 0, *size / *p.connections + 1)
		for at := i; at < *size; at += *p.connections {
			requests = append(requests, g.members[at].heartbeatRequest())
		}
		pipelines[i] = newRotatingPipeline(g.members[i].conn, requests, errorAt)
	}
	measured, err := p.measure(pipelines)
	if err != nil {
		return nil, err
	}
	if err := g.end(); err != nil {
		return nil, err
	}
	return measured, p.dropTopic(ctx, cl)
}
