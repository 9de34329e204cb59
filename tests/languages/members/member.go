// A member of the consumer protocol: address, group, topic. It tells what it reads, and ends with its input.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	has := 0
	tell := func(change int) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, topics map[string][]int32) {
			for _, partitions := range topics {
				has += change * len(partitions)
			}
			fmt.Println("has", has)
		}
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(os.Args[1]),
		kgo.ConsumerGroup(os.Args[2]),
		kgo.ConsumeTopics(os.Args[3]),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.ServerSideBalancer(),
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.OnPartitionsAssigned(tell(1)),
		kgo.OnPartitionsLost(tell(-1)),
		kgo.OnPartitionsRevoked(func(ctx context.Context, client *kgo.Client, topics map[string][]int32) {
			if err := client.CommitUncommittedOffsets(ctx); err != nil {
				panic(err)
			}
			tell(-1)(ctx, client, topics)
		}),
		kgo.BlockRebalanceOnPoll(),
		kgo.DisableAutoCommit(),
	)
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		os.Stdin.Read(make([]byte, 1))
		cancel()
	}()
	for ctx.Err() == nil {
		client.PollFetches(ctx).EachRecord(func(record *kgo.Record) {
			fmt.Println("read", string(record.Value))
		})
		client.AllowRebalance()
	}
	if err := client.CommitUncommittedOffsets(context.Background()); err != nil {
		panic(err)
	}
	client.LeaveGroup()
}
