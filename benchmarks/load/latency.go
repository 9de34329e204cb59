package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// runLatency measures from Produce being called to the record coming out of a
// consumer that long-polls, in the same process and so on the same clock.
// With -rate 0 one record is in flight: the next is sent when the last has been
// both acknowledged and read. Else records are sent at that rate, whatever
// became of those before (an open loop).
func runLatency(args []string) (*result, error) {
	c := newCommon("latency")
	records := c.flags.Int("records", 2000, "records to send")
	size := c.flags.Int("size", 100, "bytes of a record's value")
	rate := c.flags.Int("rate", 0, "records a second; 0: one in flight")
	warmUp := c.flags.Int("warm-up", 200, "records sent before the measuring begins")
	idempotent := c.flags.Bool("idempotent", true, "use an idempotent producer, as clients do by default")
	ctx, cancel, err := c.parse(args)
	if err != nil {
		return nil, err
	}
	defer cancel()
	c.partitions = 1

	options := []kgo.Opt{
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerLinger(0),
	}
	if !*idempotent {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	producer, err := c.client(options...)
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	if err := c.prepare(ctx, producer); err != nil {
		return nil, err
	}
	consumer, err := c.client(
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{c.topic: {0: kgo.NewOffset().At(1)}}),
		kgo.FetchMinBytes(1),
		kgo.FetchMaxWait(500*time.Millisecond),
	)
	if err != nil {
		return nil, err
	}
	defer consumer.Close()

	trip := newRoundTrips(*size, *warmUp+*records)
	go trip.receive(ctx, consumer)
	if err := trip.oneInFlight(ctx, producer, 0, *warmUp); err != nil {
		return nil, err
	}
	measuring, err := startSpan(c.pids)
	if err != nil {
		return nil, err
	}
	if *rate == 0 {
		err = trip.oneInFlight(ctx, producer, *warmUp, *records)
	} else {
		err = trip.atRate(ctx, producer, *warmUp, *records, *rate)
	}
	if err != nil {
		return nil, err
	}
	measured, err := measuring.end(*records)
	if err != nil {
		return nil, err
	}
	measured.Topic = c.topic
	measured.setLatencies(trip.latencies(*warmUp))
	return measured, c.dropTopic(ctx, producer)
}

// roundTrips keeps when each record was sent and received. A record's value
// opens with its index (8 bytes, big endian).
type roundTrips struct {
	size     int
	sent     []time.Time
	received []time.Time
	// arrived has one element per record read, in order.
	arrived chan error
	acked   chan error
}

func newRoundTrips(size, total int) *roundTrips {
	return &roundTrips{
		size:     max(size, 8),
		sent:     make([]time.Time, total),
		received: make([]time.Time, total),
		arrived:  make(chan error, total+1),
		acked:    make(chan error, total),
	}
}

// receive reads until every record has come, or ctx ends.
func (t *roundTrips) receive(ctx context.Context, consumer *kgo.Client) {
	for left := len(t.sent); left > 0; {
		fetches := consumer.PollFetches(ctx)
		now := time.Now()
		if err := fetches.Err(); err != nil {
			t.arrived <- err
			return
		}
		fetches.EachRecord(func(record *kgo.Record) {
			t.received[binary.BigEndian.Uint64(record.Value)] = now
			t.arrived <- nil
			left--
		})
	}
}

func (t *roundTrips) send(ctx context.Context, producer *kgo.Client, index int) {
	value := make([]byte, t.size)
	binary.BigEndian.PutUint64(value, uint64(index))
	record := &kgo.Record{Value: value}
	t.sent[index] = time.Now()
	producer.Produce(ctx, record, func(_ *kgo.Record, err error) { t.acked <- err })
}

// settle waits until so many records have been both acknowledged and read.
func (t *roundTrips) settle(ctx context.Context, count int) error {
	for range count {
		for _, events := range []chan error{t.acked, t.arrived} {
			select {
			case err := <-events:
				if err != nil {
					return err
				}
			case <-ctx.Done():
				return fmt.Errorf("waiting for a record: %w", ctx.Err())
			}
		}
	}
	return nil
}

func (t *roundTrips) oneInFlight(ctx context.Context, producer *kgo.Client, from, count int) error {
	for index := from; index < from+count; index++ {
		t.send(ctx, producer, index)
		if err := t.settle(ctx, 1); err != nil {
			return err
		}
	}
	return nil
}

func (t *roundTrips) atRate(ctx context.Context, producer *kgo.Client, from, count, rate int) error {
	// Go's own timers are a millisecond coarse when the process is idle; the kernel's are not.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	interval := time.Second / time.Duration(rate)
	begin := time.Now()
	for i := range count {
		if wait := time.Until(begin.Add(time.Duration(i) * interval)); wait > 0 {
			pause := syscall.NsecToTimespec(wait.Nanoseconds())
			// Woken early by a signal is no harm: the next record's wait makes up for it.
			_ = syscall.Nanosleep(&pause, nil)
		}
		t.send(ctx, producer, from+i)
	}
	return t.settle(ctx, count)
}

func (t *roundTrips) latencies(from int) []time.Duration {
	all := make([]time.Duration, 0, len(t.sent)-from)
	for index := from; index < len(t.sent); index++ {
		all = append(all, t.received[index].Sub(t.sent[index]))
	}
	return all
}
