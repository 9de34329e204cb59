package main

import (
	"context"
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
		conn, err := c.dial(ctx)
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		pipelines[i] = newPipeline(conn, request, produceErrorAt(request))
	}
	measuring, err := startSpan(c.pids)
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

// produceErrorAt is where the error code stands in the response to a request for one
// partition, counted from the length prefix: length and correlation id; from version 9
// on a tag section and one-byte lengths; topics' count, name or id, partitions' count,
// partition.
func produceErrorAt(request *kmsg.ProduceRequest) int {
	name := len(request.Topics[0].Topic)
	switch {
	case request.Version >= 13:
		return 4 + 4 + 1 + 1 + 16 + 1 + 4
	case request.Version >= 9:
		return 4 + 4 + 1 + 1 + 1 + name + 1 + 4
	default:
		return 4 + 4 + 4 + 2 + name + 4 + 4
	}
}
