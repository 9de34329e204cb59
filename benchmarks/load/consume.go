package main

import (
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// recordPool gives the client's record slices back to it; without it, consuming
// small records measures Go's garbage collector more than the broker.
type recordPool struct{ slices sync.Pool }

func (p *recordPool) GetRecords(n int) []kgo.Record {
	if slice, ok := p.slices.Get().(*[]kgo.Record); ok && cap(*slice) >= n {
		return (*slice)[:0]
	}
	return make([]kgo.Record, 0, n)
}

func (p *recordPool) PutRecords(slice []kgo.Record) { p.slices.Put(&slice) }

// runConsume measures how fast a topic's records come out: every partition is
// assigned from its start and read until -records have been seen.
func runConsume(args []string) (*result, error) {
	c := newCommon("consume")
	records := c.flags.Int("records", 1_000_000, "records to read")
	fetchBytes := c.flags.Int("fetch-bytes", 50<<20, "bytes of a fetch response at most")
	partitionBytes := c.flags.Int("partition-bytes", 4<<20, "bytes of one partition in a fetch response at most")
	ctx, cancel, err := c.parse(args)
	if err != nil {
		return nil, err
	}
	defer cancel()

	cl, err := c.client(
		kgo.FetchMaxBytes(int32(*fetchBytes)),
		kgo.FetchMaxPartitionBytes(int32(*partitionBytes)),
		kgo.WithPools(&recordPool{}),
	)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	if err := cl.Ping(ctx); err != nil {
		return nil, err
	}
	offsets := make(map[int32]kgo.Offset, c.partitions)
	for partition := range c.partitions {
		offsets[int32(partition)] = kgo.NewOffset().AtStart()
	}
	measuring, err := startSpan(c.pids)
	if err != nil {
		return nil, err
	}
	cl.AddConsumePartitions(map[string]map[int32]kgo.Offset{c.topic: offsets})
	seen := 0
	for seen < *records {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("after %d of %d records: %w", seen, *records, err)
		}
		fetches.EachPartition(func(partition kgo.FetchTopicPartition) {
			seen += len(partition.Records)
			for _, record := range partition.Records {
				record.Recycle()
			}
		})
	}
	measured, err := measuring.end(seen)
	if err != nil {
		return nil, err
	}
	measured.Topic = c.topic
	return measured, c.dropTopic(ctx, cl)
}
