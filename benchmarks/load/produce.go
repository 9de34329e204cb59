package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// recordsAtOnce is how many records are allocated together.
const recordsAtOnce = 4096

// runProduce measures how fast records go in: uncompressed, acks=all, spread
// evenly over the partitions, batches as large as the backlog and -batch-bytes allow.
func runProduce(args []string) (*result, error) {
	c := newCommon("produce")
	records := c.flags.Int("records", 1_000_000, "records to produce")
	size := c.flags.Int("size", 100, "bytes of a record's value")
	keys := c.flags.Int("keys", 0, "keys that the records have in turn; 0: none has a key")
	idempotent := c.flags.Bool("idempotent", false, "use an idempotent producer")
	linger := c.flags.Duration("linger", 5*time.Millisecond, "how long a batch waits for more records")
	batchBytes := c.flags.Int("batch-bytes", 1_000_012, "largest batch, bytes")
	buffered := c.flags.Int("buffered-bytes", 64<<20, "bytes of values the client holds at most")
	inFlight := c.flags.Int("in-flight", 5, "produce requests in flight at most (without -idempotent)")
	ctx, cancel, err := c.parse(args)
	if err != nil {
		return nil, err
	}
	defer cancel()

	options := []kgo.Opt{
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerLinger(*linger),
		kgo.ProducerBatchMaxBytes(int32(*batchBytes)),
		kgo.MaxBufferedRecords(max(*buffered / *size, 1000)),
	}
	if !*idempotent {
		options = append(options, kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(*inFlight))
	}
	cl, err := c.client(options...)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	if err := c.prepare(ctx, cl); err != nil {
		return nil, err
	}
	values, err := newPayload(*size)
	if err != nil {
		return nil, err
	}
	measuring, err := startSpan(c.pids)
	if err != nil {
		return nil, err
	}
	if err := produceAll(ctx, cl, values, *records, c.partitions, *keys); err != nil {
		return nil, err
	}
	measured, err := measuring.end(*records)
	if err != nil {
		return nil, err
	}
	measured.Topic = c.topic
	return measured, c.dropTopic(ctx, cl)
}

// prepare makes the topic and sends one record to each partition, so that
// connections, metadata and producer id are there when the measuring begins.
func (c *common) prepare(ctx context.Context, cl *kgo.Client) error {
	if err := c.createTopic(ctx, cl); err != nil {
		return err
	}
	for partition := range c.partitions {
		first := &kgo.Record{Partition: int32(partition), Key: []byte("first"), Value: []byte("first")}
		if err := cl.ProduceSync(ctx, first).FirstErr(); err != nil {
			return fmt.Errorf("first record of partition %d: %w", partition, err)
		}
	}
	return nil
}

func produceAll(ctx context.Context, cl *kgo.Client, values *payload, records, partitions, keys int) error {
	var failed atomic.Int64
	var firstFailure atomic.Pointer[error]
	promise := func(_ *kgo.Record, err error) {
		if err != nil {
			failed.Add(1)
			firstFailure.CompareAndSwap(nil, &err)
		}
	}
	var block []kgo.Record
	for i := range records {
		if len(block) == 0 {
			block = make([]kgo.Record, recordsAtOnce)
		}
		record := &block[0]
		block = block[1:]
		record.Value = values.value(i)
		record.Partition = int32(i % partitions)
		if keys > 0 {
			record.Key = fmt.Appendf(nil, "key-%d", i%keys)
		}
		cl.Produce(ctx, record, promise)
	}
	if err := cl.Flush(ctx); err != nil {
		return err
	}
	if failed.Load() > 0 {
		return fmt.Errorf("%d of %d records failed, the first with: %w", failed.Load(), records, *firstFailure.Load())
	}
	return nil
}
