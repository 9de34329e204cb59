package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// runSmallBatches measures what a Produce request costs the broker: batches of
// exactly -batch records, one batch a request, -window requests in flight on each
// of several connections. Each connection encodes its request once and changes
// only the correlation id in it.
func runSmallBatches(args []string) (*result, error) {
	c := newCommon("small-batches")
	requests := c.flags.Int("requests", 100_000, "produce requests to send in all")
	perBatch := c.flags.Int("batch", 1, "records in a batch")
	size := c.flags.Int("size", 100, "bytes of a record's value")
	connections := c.flags.Int("connections", 8, "TCP connections")
	window := c.flags.Int("window", 32, "requests in flight on a connection")
	version := c.flags.Int("version", 13, "version of Produce")
	ctx, cancel, err := c.parse(args)
	if err != nil {
		return nil, err
	}
	defer cancel()

	cl, err := c.client(
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DisableIdempotentWrite(),
		kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	if err := c.prepare(ctx, cl); err != nil {
		return nil, err
	}
	id, err := topicID(ctx, cl, c.topic)
	if err != nil {
		return nil, err
	}
	batch, err := randomBatch(*perBatch, *size)
	if err != nil {
		return nil, err
	}
	pipelines := make([]*pipeline, *connections)
	for i := range pipelines {
		request := produceRequest(int16(*version), c.topic, id, int32(i%c.partitions), batch)
		if pipelines[i], err = dialPipeline(ctx, c.broker, request); err != nil {
			return nil, err
		}
		defer pipelines[i].conn.Close()
	}
	measuring, err := startSpan(c.pid)
	if err != nil {
		return nil, err
	}
	each := max(*requests / *connections, 1)
	if err := runAll(pipelines, each, *window); err != nil {
		return nil, err
	}
	measured, err := measuring.end(each * *connections * *perBatch)
	if err != nil {
		return nil, err
	}
	measured.Topic = c.topic
	measured.Requests = each * *connections
	return measured, c.dropTopic(ctx, cl)
}

func randomBatch(records, size int) ([]byte, error) {
	random, err := newPayload(size)
	if err != nil {
		return nil, err
	}
	values := make([][]byte, records)
	for i := range values {
		values[i] = random.value(i)
	}
	return buildBatch(values, time.Now()), nil
}

func topicID(ctx context.Context, cl *kgo.Client, topic string) ([16]byte, error) {
	of := kmsg.NewMetadataRequestTopic()
	of.Topic = kmsg.StringPtr(topic)
	request := kmsg.NewPtrMetadataRequest()
	request.Topics = append(request.Topics, of)
	response, err := request.RequestWith(ctx, cl)
	if err != nil {
		return [16]byte{}, err
	}
	return response.Topics[0].TopicID, kerr.ErrorForCode(response.Topics[0].ErrorCode)
}

func runAll(pipelines []*pipeline, each, window int) error {
	done := make(chan error, len(pipelines))
	for _, p := range pipelines {
		go func() { done <- p.run(each, window) }()
	}
	var failures []error
	for range pipelines {
		failures = append(failures, <-done)
	}
	return errors.Join(failures...)
}

// pipeline is one connection with many equal requests in flight. One goroutine
// both writes and reads: for every response it has read it owes one request, and
// it pays in one write whatever one read brought.
type pipeline struct {
	conn    net.Conn
	request []byte
	// errorAt is where a response's error code stands, counted from its length prefix.
	errorAt int
	burst   []byte
	sent    int
	done    int
}

func dialPipeline(ctx context.Context, broker string, request *kmsg.ProduceRequest) (*pipeline, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", broker)
	if err != nil {
		return nil, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return nil, err
		}
	}
	// Length, correlation id; from version 9 on a tag section and one-byte lengths;
	// topics' count, name or id, partitions' count, partition: then the error code.
	errorAt := 4 + 4 + 4 + 2 + len(request.Topics[0].Topic) + 4 + 4
	if request.Version >= 13 {
		errorAt = 4 + 4 + 1 + 1 + 16 + 1 + 4
	} else if request.Version >= 9 {
		errorAt = 4 + 4 + 1 + 1 + 1 + len(request.Topics[0].Topic) + 1 + 4
	}
	return &pipeline{conn: conn, request: formatter.AppendRequest(nil, request, 0), errorAt: errorAt}, nil
}

// run sends count requests, at most window of them unanswered at a time.
func (p *pipeline) run(count, window int) error {
	if err := p.send(min(window, count)); err != nil {
		return err
	}
	buffer := make([]byte, 64<<10)
	filled := 0
	for p.done < count {
		n, err := p.conn.Read(buffer[filled:])
		if err != nil {
			return fmt.Errorf("after %d of %d responses: %w", p.done, count, err)
		}
		filled += n
		taken, answered, err := p.take(buffer[:filled])
		if err != nil {
			return err
		}
		filled = copy(buffer, buffer[taken:filled])
		if err := p.send(min(answered, count-p.sent)); err != nil {
			return err
		}
	}
	return nil
}

func (p *pipeline) send(count int) error {
	if count == 0 {
		return nil
	}
	p.burst = p.burst[:0]
	for range count {
		start := len(p.burst)
		p.burst = append(p.burst, p.request...)
		binary.BigEndian.PutUint32(p.burst[start+requestHead:], uint32(p.sent))
		p.sent++
	}
	_, err := p.conn.Write(p.burst)
	return err
}

// take checks the whole responses in data; it gives the bytes and the responses taken.
func (p *pipeline) take(data []byte) (taken, answered int, err error) {
	for len(data)-taken >= 4 {
		frame := data[taken:]
		length := 4 + int(binary.BigEndian.Uint32(frame))
		if len(frame) < length {
			break
		}
		if length < p.errorAt+2 {
			return taken, answered, fmt.Errorf("response of %d bytes, too short for a Produce response", length)
		}
		if correlation := binary.BigEndian.Uint32(frame[4:]); correlation != uint32(p.done) {
			return taken, answered, fmt.Errorf("correlation id %d where %d was due", correlation, p.done)
		}
		if code := int16(binary.BigEndian.Uint16(frame[p.errorAt:])); code != 0 {
			return taken, answered, kerr.ErrorForCode(code)
		}
		taken += length
		answered++
		p.done++
	}
	return taken, answered, nil
}
