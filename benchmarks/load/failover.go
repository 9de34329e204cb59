package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A failover ends the broker that matters with kill -9, and measures how long it takes until a client, which tries
// again all the time, has got its next answer: a record acknowledged, an offset or a transaction committed.

// againEvery is how soon a client tries again. Its own backing off is to be no part of the figures.
const againEvery = 10 * time.Millisecond

// failover are a cluster's flags: which process is which broker's.
type failover struct {
	*common
	nodes map[int32]int
}

func newFailover(name string) *failover {
	f := &failover{newCommon(name), make(map[int32]int)}
	f.replicas = 3
	f.flags.Func("nodes", "NODE:PID of each broker, separated by commas", func(list string) error {
		for _, pair := range strings.Split(list, ",") {
			node, pid, _ := strings.Cut(pair, ":")
			id, err := strconv.ParseInt(node, 10, 32)
			if err != nil {
				return err
			}
			if f.nodes[int32(id)], err = strconv.Atoi(pid); err != nil {
				return err
			}
		}
		return nil
	})
	return f
}

func (f *failover) client(options ...kgo.Opt) (*kgo.Client, error) {
	return f.common.client(append([]kgo.Opt{
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerLinger(0),
		kgo.RequestRetries(1 << 20),
		kgo.RetryTimeout(f.timeout),
		kgo.RetryBackoffFn(func(int) time.Duration { return againEvery }),
	}, options...)...)
}

// end kills a broker.
func (f *failover) end(node int32) error {
	pid, known := f.nodes[node]
	if !known {
		return fmt.Errorf("-nodes does not name broker %d", node)
	}
	return syscall.Kill(pid, syscall.SIGKILL)
}

// measured kills the broker, and tells how long `next` takes from then on.
func (f *failover) measured(node int32, next func() error) (*result, error) {
	if err := f.end(node); err != nil {
		return nil, err
	}
	begin := time.Now()
	if err := next(); err != nil {
		return nil, err
	}
	return &result{Topic: f.topic, Node: node, Seconds: time.Since(begin).Seconds()}, nil
}

func (f *failover) produce(ctx context.Context, cl *kgo.Client, partition int32) error {
	return cl.ProduceSync(ctx, &kgo.Record{Partition: partition, Value: []byte("a record")}).FirstErr()
}

func runFailoverProduce(args []string) (*result, error) {
	f := newFailover("failover-produce")
	ctx, cancel, err := f.parse(args)
	if err != nil {
		return nil, err
	}
	defer cancel()
	cl, err := f.client()
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	if err := f.prepare(ctx, cl); err != nil {
		return nil, err
	}
	topics, err := describe(ctx, cl, f.topic)
	if err != nil {
		return nil, err
	}
	leader := topics[0].Partitions[0].Leader
	return f.measured(leader, func() error { return f.produce(ctx, cl, topics[0].Partitions[0].Partition) })
}

func runFailoverCommit(args []string) (*result, error) {
	f := newFailover("failover-commit")
	ctx, cancel, err := f.parse(args)
	if err != nil {
		return nil, err
	}
	defer cancel()
	cl, err := f.client()
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	if err := f.prepare(ctx, cl); err != nil {
		return nil, err
	}
	topics, err := describe(ctx, cl, f.topic)
	if err != nil {
		return nil, err
	}
	request := f.commitRequest(topics[0].TopicID)
	commit := func() error {
		response, err := request.RequestWith(ctx, cl)
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(response.Topics[0].Partitions[0].ErrorCode)
	}
	if err := whenReady(ctx, commit); err != nil {
		return nil, err
	}
	coordinator, err := coordinatorOf(ctx, cl, f.topic, 0)
	if err != nil {
		return nil, err
	}
	return f.measured(coordinator, func() error { return f.untilDone(ctx, commit) })
}

func runFailoverTransaction(args []string) (*result, error) {
	f := newFailover("failover-transaction")
	ctx, cancel, err := f.parse(args)
	if err != nil {
		return nil, err
	}
	defer cancel()
	cl, err := f.client(kgo.TransactionalID(f.topic))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	if err := f.createTopic(ctx, cl); err != nil {
		return nil, err
	}
	// From its answer the client knows transaction.version.
	if err := cl.Ping(ctx); err != nil {
		return nil, err
	}
	// A transaction before, so that everything is there that the next one needs.
	if err := cl.BeginTransaction(); err != nil {
		return nil, err
	}
	if err := f.produce(ctx, cl, 0); err != nil {
		return nil, err
	}
	if err := cl.EndTransaction(ctx, kgo.TryCommit); err != nil {
		return nil, err
	}
	coordinator, err := coordinatorOf(ctx, cl, f.topic, 1)
	if err != nil {
		return nil, err
	}
	partition, err := partitionElsewhere(ctx, cl, f.topic, coordinator)
	if err != nil {
		return nil, err
	}
	if err := cl.BeginTransaction(); err != nil {
		return nil, err
	}
	if err := f.produce(ctx, cl, partition); err != nil {
		return nil, err
	}
	// Not the client's own EndTransaction, which gives up where it cannot connect.
	id, epoch, err := cl.ProducerID(ctx)
	if err != nil {
		return nil, err
	}
	request := kmsg.NewPtrEndTxnRequest()
	request.TransactionalID, request.ProducerID, request.ProducerEpoch, request.Commit = f.topic, id, epoch, true
	return f.measured(coordinator, func() error {
		return f.untilDone(ctx, func() error {
			response, err := request.RequestWith(ctx, cl)
			if err != nil {
				return err
			}
			return kerr.ErrorForCode(response.ErrorCode)
		})
	})
}

// untilDone tries again, whatever has failed.
func (f *failover) untilDone(ctx context.Context, try func() error) error {
	for {
		err := try()
		if err == nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		time.Sleep(againEvery)
	}
}

// commitRequest commits for a group without members, whose name is the topic's.
func (f *failover) commitRequest(topicID [16]byte) *kmsg.OffsetCommitRequest {
	at := kmsg.NewOffsetCommitRequestTopicPartition()
	at.Metadata = kmsg.StringPtr("")
	of := kmsg.NewOffsetCommitRequestTopic()
	of.Topic = f.topic
	of.TopicID = topicID
	of.Partitions = append(of.Partitions, at)
	request := kmsg.NewPtrOffsetCommitRequest()
	request.Group = f.topic
	request.Generation = -1
	request.Topics = append(request.Topics, of)
	return request
}

// describe gives a topic, or all for an empty name.
func describe(ctx context.Context, cl *kgo.Client, topic string) ([]kmsg.MetadataResponseTopic, error) {
	request := kmsg.NewPtrMetadataRequest()
	if topic != "" {
		of := kmsg.NewMetadataRequestTopic()
		of.Topic = kmsg.StringPtr(topic)
		request.Topics = append(request.Topics, of)
	}
	response, err := request.RequestWith(ctx, cl)
	if err != nil {
		return nil, err
	}
	for _, found := range response.Topics {
		if err := kerr.ErrorForCode(found.ErrorCode); err != nil {
			return nil, err
		}
	}
	return response.Topics, nil
}

func coordinatorOf(ctx context.Context, cl *kgo.Client, key string, keyType int8) (int32, error) {
	request := kmsg.NewPtrFindCoordinatorRequest()
	request.CoordinatorKey = key
	request.CoordinatorKeys = []string{key}
	request.CoordinatorType = keyType
	response, err := request.RequestWith(ctx, cl)
	if err != nil {
		return 0, err
	}
	if len(response.Coordinators) == 1 {
		found := response.Coordinators[0]
		return found.NodeID, kerr.ErrorForCode(found.ErrorCode)
	}
	return response.NodeID, kerr.ErrorForCode(response.ErrorCode)
}

// partitionElsewhere gives a partition that another broker leads.
func partitionElsewhere(ctx context.Context, cl *kgo.Client, topic string, node int32) (int32, error) {
	topics, err := describe(ctx, cl, topic)
	if err != nil {
		return 0, err
	}
	for _, partition := range topics[0].Partitions {
		if partition.Leader != node {
			return partition.Partition, nil
		}
	}
	return 0, fmt.Errorf("broker %d leads all of %s", node, topic)
}

// runAwaitInSync returns when every partition of every topic has a leader and all its replicas in sync, and there
// are as many brokers as -replicas says.
func runAwaitInSync(args []string) (*result, error) {
	f := newFailover("await-in-sync")
	ctx, cancel, err := f.parse(args)
	if err != nil {
		return nil, err
	}
	defer cancel()
	cl, err := f.client()
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	begin := time.Now()
	err = f.untilDone(ctx, func() error {
		topics, err := describe(ctx, cl, "")
		if err != nil {
			return err
		}
		for _, topic := range topics {
			for _, partition := range topic.Partitions {
				if partition.Leader < 0 || len(partition.ISR) < len(partition.Replicas) {
					return fmt.Errorf("%s-%d: in sync are %v", *topic.Topic, partition.Partition, partition.ISR)
				}
			}
		}
		return nil
	})
	return &result{Seconds: time.Since(begin).Seconds()}, err
}
