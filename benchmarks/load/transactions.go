package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// runTransactions measures transactions of franz-go's transactional client, each
// producer on its own client with a transactional id of its own, one transaction
// after the other: begin, records to as many partitions as there are, with
// -offsets one committed offset too, commit. The client's own backing off is in
// the figures, as it is in an application's: it waits 20 ms, franz-go's default,
// when a broker says CONCURRENT_TRANSACTIONS because it has not written the last
// transaction's markers yet.
//
// A load of so many milliseconds, not of so many transactions, because brokers
// differ too much in those. P50 and p99 are of the commit alone: EndTxn as the
// client sees it, the records acknowledged before.
func runTransactions(args []string) (*result, error) {
	c := newCommon("transactions")
	milliseconds := c.flags.Int("milliseconds", 2_000, "how long to go on")
	producers := c.flags.Int("producers", 1, "producers, each with a transactional id of its own")
	records := c.flags.Int("records", 1, "records in a transaction")
	size := c.flags.Int("size", 100, "bytes of a record's value")
	offsets := c.flags.Bool("offsets", false, "commit an offset in each transaction")
	ctx, cancel, err := c.parse(args)
	if err != nil {
		return nil, err
	}
	defer cancel()

	admin, err := c.client()
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	if err := c.createTopic(ctx, admin); err != nil {
		return nil, err
	}
	var id [16]byte
	if err := whenReady(ctx, func() error { id, err = topicID(ctx, admin, c.topic); return err }); err != nil {
		return nil, err
	}
	values, err := newPayload(*size)
	if err != nil {
		return nil, err
	}
	all := make([]*transactor, *producers)
	for i := range all {
		t, err := c.newTransactor(i, *records, values)
		if err != nil {
			return nil, err
		}
		if *offsets {
			t.offset = txnOffsetCommitRequest(t.id, c.topic, id, int32(i%c.partitions))
		}
		defer t.cl.Close()
		if err := t.warmUp(ctx); err != nil {
			return nil, err
		}
		all[i] = t
	}
	measuring, err := startSpan(c.pids)
	if err != nil {
		return nil, err
	}
	commits, err := transactUntil(ctx, all, time.Now().Add(time.Duration(*milliseconds)*time.Millisecond))
	if err != nil {
		return nil, err
	}
	measured, err := measuring.end(len(commits) * *records)
	if err != nil {
		return nil, err
	}
	measured.Requests = len(commits)
	measured.Topic = c.topic
	measured.setLatencies(commits)
	return measured, c.dropTopic(ctx, admin)
}

// transactUntil has all producers make transactions until then, at the same time, and gives how long each commit took.
func transactUntil(ctx context.Context, all []*transactor, until time.Time) ([]time.Duration, error) {
	ended := make(chan error, len(all))
	for _, t := range all {
		go func() {
			for time.Now().Before(until) {
				if err := t.transact(ctx); err != nil {
					ended <- fmt.Errorf("transaction %d of %s: %w", len(t.commits), t.id, err)
					return
				}
			}
			ended <- nil
		}()
	}
	for range all {
		if err := <-ended; err != nil {
			return nil, err
		}
	}
	var commits []time.Duration
	for _, t := range all {
		commits = append(commits, t.commits...)
	}
	return commits, nil
}

// transactor is one transactional producer.
type transactor struct {
	cl      *kgo.Client
	id      string
	records []*kgo.Record
	// partitions is how many the topic has; each transaction begins one partition further on.
	partitions, next int
	// offset is the request that commits an offset in a transaction; nil when none is to be committed.
	offset *kmsg.TxnOffsetCommitRequest
	// commits are how long each commit took, in order.
	commits []time.Duration
}

func (c *common) newTransactor(index, records int, values *payload) (*transactor, error) {
	id := fmt.Sprintf("%s-%d", c.topic, index)
	cl, err := c.client(
		kgo.TransactionalID(id),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerLinger(0),
	)
	if err != nil {
		return nil, err
	}
	t := &transactor{cl: cl, id: id, records: make([]*kgo.Record, records), partitions: c.partitions, next: index}
	for i := range t.records {
		t.records[i] = &kgo.Record{Value: values.value(index*records + i)}
	}
	return t, nil
}

// warmUp makes one transaction, so that connections, coordinators and the producer id are there.
func (t *transactor) warmUp(ctx context.Context) error {
	// From its answer the client knows transaction.version, without which its first transaction would be an old client's (KIP-890).
	if err := t.cl.Ping(ctx); err != nil {
		return err
	}
	if err := t.transact(ctx); err != nil {
		return fmt.Errorf("first transaction of %s: %w", t.id, err)
	}
	t.commits = nil
	return nil
}

func (t *transactor) transact(ctx context.Context) error {
	if err := t.cl.BeginTransaction(); err != nil {
		return err
	}
	for i, record := range t.records {
		// Sent before: a copy, since the client keeps its notes in a record.
		t.records[i] = &kgo.Record{Value: record.Value, Partition: int32((t.next + i) % t.partitions)}
	}
	t.next++
	if err := t.cl.ProduceSync(ctx, t.records...).FirstErr(); err != nil {
		return err
	}
	if t.offset != nil {
		if err := whenReady(ctx, func() error { return t.commitOffset(ctx) }); err != nil {
			return err
		}
	}
	begin := time.Now()
	if err := t.cl.EndTransaction(ctx, kgo.TryCommit); err != nil {
		return err
	}
	t.commits = append(t.commits, time.Since(begin))
	return nil
}

// commitOffset commits the next offset in the transaction that is open. The coordinator adds the group's
// partition to the transaction by itself, as it does for every client since KIP-890.
func (t *transactor) commitOffset(ctx context.Context) error {
	id, epoch, err := t.cl.ProducerID(ctx)
	if err != nil {
		return err
	}
	t.offset.ProducerID, t.offset.ProducerEpoch = id, epoch
	t.offset.Topics[0].Partitions[0].Offset++
	response, err := t.offset.RequestWith(ctx, t.cl)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(response.Topics[0].Partitions[0].ErrorCode)
}

// txnOffsetCommitRequest commits for a group without members, as a consumer that assigns itself its partitions does.
func txnOffsetCommitRequest(id, topic string, topicID [16]byte, partition int32) *kmsg.TxnOffsetCommitRequest {
	at := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	at.Partition = partition
	at.Metadata = kmsg.StringPtr("")
	of := kmsg.NewTxnOffsetCommitRequestTopic()
	of.Topic = topic
	// What newest brokers go by instead of the name (KIP-1319).
	of.TopicID = topicID
	of.Partitions = append(of.Partitions, at)
	request := kmsg.NewPtrTxnOffsetCommitRequest()
	request.TransactionalID = id
	request.Group = id
	request.Topics = append(request.Topics, of)
	return request
}
