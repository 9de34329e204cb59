// As share_member.py: address, group, topic, and "hold" or "work".
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var statuses = map[string]kgo.AckStatus{"accept": kgo.AckAccept, "release": kgo.AckRelease, "reject": kgo.AckReject}

// failures has the error of each partition since the last poll. The client tells outcomes by partition only.
type failures struct {
	sync.Mutex
	reasons map[int32]string
}

func (f *failures) committed(_ *kgo.Client, results kgo.ShareAckResults) {
	f.Lock()
	defer f.Unlock()
	for _, result := range results {
		if result.Err != nil {
			f.reasons[result.Partition] = strings.Fields(result.Err.Error())[0]
		}
	}
}

func (f *failures) take() map[int32]string {
	f.Lock()
	defer f.Unlock()
	reasons := f.reasons
	f.reasons = map[int32]string{}
	return reasons
}

func wordOf(record *kgo.Record) string {
	if string(record.Value) == "release" && record.DeliveryCount() > 1 {
		return "accept"
	}
	return string(record.Value)
}

// acknowledge waits for the outcomes, so that each poll has its own.
func acknowledge(client *kgo.Client, failed *failures, records []*kgo.Record) {
	for _, record := range records {
		record.Ack(statuses[wordOf(record)])
	}
	flushing, stop := context.WithTimeout(context.Background(), 5*time.Second)
	defer stop()
	late := client.FlushAcks(flushing)
	reasons := failed.take()
	for _, record := range records {
		reason, isLost := reasons[record.Partition]
		if late != nil {
			reason, isLost = "late", true
		}
		told := "done"
		if isLost {
			told = "lost"
		}
		fmt.Println(told, record.Partition, record.Offset, wordOf(record), reason)
	}
}

func main() {
	failed := &failures{reasons: map[int32]string{}}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(os.Args[1], ",")...),
		kgo.ShareGroup(os.Args[2]),
		kgo.ConsumeTopics(os.Args[3]),
		kgo.ShareAckCallback(failed.committed),
		kgo.MetadataMinAge(200*time.Millisecond),
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
		polling, stop := context.WithTimeout(ctx, 200*time.Millisecond)
		records := client.PollFetches(polling).Records()
		stop()
		for _, record := range records {
			fmt.Println("got", record.Partition, record.Offset, record.DeliveryCount())
		}
		if len(records) > 0 && os.Args[4] == "hold" {
			fmt.Println("holds")
			select {}
		}
		acknowledge(client, failed, records)
	}
	client.LeaveGroup()
}
