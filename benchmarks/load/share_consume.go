package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A broker that gives some member nothing for so long gives it nothing: the measurement begins without it.
const gatherTimeout = 5 * time.Second

// shareWait is how long a fetch may wait. The records that a member has polled it acknowledges with its next fetch. A member whose fetch
// waits for room can so hold back the records that take that room.
const shareWait = 20 * time.Millisecond

// groupResource is the number of a group's configs.
const groupResource = 32

// shareMembers are the consumers of one share group (KIP-932), each with connections of its own.
type shareMembers struct {
	clients  []*kgo.Client
	explicit bool
	// gathered counts down as each member gets its first records, which it holds until the measurement begins.
	gathered sync.WaitGroup
	begun    chan struct{}
	seen     atomic.Int64
	failed   atomic.Pointer[error]
}

// runShareConsume measures how fast a new share group works off a topic: -members consumers poll and accept until
// -records have been seen. By default the next poll accepts the records of the last one. With -explicit each record is
// acknowledged, and the outcome is awaited, before the next poll. The measurement begins when each member has records.
func runShareConsume(args []string) (*result, error) {
	c := newCommon("share-consume")
	records := c.flags.Int("records", 300_000, "records to read")
	size := c.flags.Int("members", 1, "members of the group")
	explicit := c.flags.Bool("explicit", false, "acknowledge each record, and wait for that after each poll")
	ctx, cancel, err := c.parse(args)
	if err != nil {
		return nil, err
	}
	defer cancel()
	cl, err := c.client()
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	group := fmt.Sprintf("%s-%d", c.topic, time.Now().UnixNano())
	if err := fromEarliest(ctx, cl, group); err != nil {
		return nil, err
	}
	members := &shareMembers{explicit: *explicit, begun: make(chan struct{})}
	defer members.close(ctx)
	for range *size {
		member, err := c.client(kgo.ShareGroup(group), kgo.ConsumeTopics(c.topic), kgo.FetchMaxWait(shareWait))
		if err != nil {
			return nil, err
		}
		members.clients = append(members.clients, member)
	}
	members.gathered.Add(*size)
	working, stop := context.WithCancel(ctx)
	defer stop()
	var ended sync.WaitGroup
	for _, member := range members.clients {
		ended.Add(1)
		go func() {
			defer ended.Done()
			members.work(working, stop, member, int64(*records))
		}()
	}
	members.await()
	measuring, err := startSpan(c.pids)
	if err != nil {
		return nil, err
	}
	close(members.begun)
	ended.Wait()
	if failure := members.failed.Load(); failure != nil {
		return nil, fmt.Errorf("after %d of %d records: %w", members.seen.Load(), *records, *failure)
	}
	measured, err := measuring.end(int(members.seen.Load()))
	if err != nil {
		return nil, err
	}
	measured.Topic = c.topic
	return measured, c.dropTopic(ctx, cl)
}

// fromEarliest lets a new share group begin with the topic's first record.
func fromEarliest(ctx context.Context, cl *kgo.Client, group string) error {
	config := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	config.Name, config.Value = "share.auto.offset.reset", kmsg.StringPtr("earliest")
	resource := kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = groupResource, group
	resource.Configs = append(resource.Configs, config)
	request := kmsg.NewPtrIncrementalAlterConfigsRequest()
	request.Resources = append(request.Resources, resource)
	response, err := request.RequestWith(ctx, cl)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(response.Resources[0].ErrorCode)
}

// await waits until each member has records, or some have had none for long.
func (s *shareMembers) await() {
	all := make(chan struct{})
	go func() {
		s.gathered.Wait()
		close(all)
	}()
	select {
	case <-all:
	case <-time.After(gatherTimeout):
	}
}

// work polls until all members together have seen so many records, and then stops the others.
func (s *shareMembers) work(ctx context.Context, stop func(), member *kgo.Client, records int64) {
	var first sync.Once
	defer first.Do(s.gathered.Done)
	for ctx.Err() == nil {
		fetches := member.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			if s.seen.Load() < records {
				s.failed.CompareAndSwap(nil, &err)
				stop()
			}
			return
		}
		first.Do(s.gathered.Done)
		<-s.begun
		polled := fetches.Records()
		if s.explicit {
			for _, record := range polled {
				record.Ack(kgo.AckAccept)
			}
			if err := member.FlushAcks(ctx); err != nil && ctx.Err() == nil {
				s.failed.CompareAndSwap(nil, &err)
				stop()
				return
			}
		}
		if s.seen.Add(int64(len(polled))) >= records {
			stop()
		}
	}
}

func (s *shareMembers) close(ctx context.Context) {
	var left sync.WaitGroup
	for _, member := range s.clients {
		left.Add(1)
		go func() {
			defer left.Done()
			_ = member.LeaveGroupContext(ctx)
			member.Close()
		}()
	}
	left.Wait()
}
