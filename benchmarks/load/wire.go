package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Some loads speak the protocol over plain TCP: those where a full client would
// cost more than the broker (small-batches, heartbeats, commits), those that must not
// wait for a client's back-off while a broker starts (first-record, fetch-offsets),
// and those of groups, where each member is to do one thing at a time.

// requestHead is what precedes a request's correlation id: length (4 bytes),
// API key (2), version (2).
const requestHead = 8

var formatter = kmsg.NewRequestFormatter(kmsg.FormatterClientID("odradek-bench"))

// dial opens a connection on which everything fails once the load's time is up.
func (c *common) dial(ctx context.Context) (net.Conn, error) { return c.dialTo(ctx, c.first()) }

// first is the address of the first broker named.
func (c *common) first() string {
	address, _, _ := strings.Cut(c.broker, ",")
	return address
}

func (c *common) dialTo(ctx context.Context, address string) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return nil, err
		}
	}
	return c.secured(conn)
}

// exchange sends one request and reads its response, the only one that is under way on the connection.
func exchange(conn net.Conn, request kmsg.Request) (kmsg.Response, error) {
	if _, err := conn.Write(formatter.AppendRequest(nil, request, 1)); err != nil {
		return nil, err
	}
	// Most responses come with the first read.
	first := make([]byte, 512)
	have, err := io.ReadAtLeast(conn, first, 4)
	if err != nil {
		return nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(first))
	if _, err := io.ReadFull(conn, body[copy(body, first[4:have]):]); err != nil {
		return nil, err
	}
	response := request.ResponseKind()
	response.SetVersion(request.GetVersion())
	skip := 4 // the correlation id
	if response.IsFlexible() {
		skip++ // and an empty tag section
	}
	if len(body) < skip {
		return nil, fmt.Errorf("response of %d bytes", len(body))
	}
	return response, response.ReadFrom(body[skip:])
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// buildBatch encodes one uncompressed, non-idempotent batch (magic 2) of the given values.
func buildBatch(values [][]byte, now time.Time) []byte {
	var records []byte
	for i, value := range values {
		record := kmsg.Record{OffsetDelta: int32(i), Value: value}
		// Length counts what follows it; as encoded with length 0, that is all but one byte.
		record.Length = int32(len(record.AppendTo(nil)) - 1)
		records = record.AppendTo(records)
	}
	batch := kmsg.NewRecordBatch()
	batch.PartitionLeaderEpoch = -1
	batch.Magic = 2
	batch.LastOffsetDelta = int32(len(values) - 1)
	batch.FirstTimestamp = now.UnixMilli()
	batch.MaxTimestamp = now.UnixMilli()
	batch.ProducerID = -1
	batch.ProducerEpoch = -1
	batch.FirstSequence = -1
	batch.NumRecords = int32(len(values))
	batch.Records = records
	encoded := batch.AppendTo(nil)
	const lengthAt, lengthEnd, crcAt, crcEnd = 8, 12, 17, 21
	binary.BigEndian.PutUint32(encoded[lengthAt:], uint32(len(encoded)-lengthEnd))
	binary.BigEndian.PutUint32(encoded[crcAt:], crc32.Checksum(encoded[crcEnd:], castagnoli))
	return encoded
}

// produceRequest is a Produce, acks=all, of one batch to one partition. From
// version 13 on the topic's id is sent, before that its name.
func produceRequest(version int16, topic string, id [16]byte, partition int32, batch []byte) *kmsg.ProduceRequest {
	into := kmsg.NewProduceRequestTopicPartition()
	into.Partition = partition
	into.Records = batch
	of := kmsg.NewProduceRequestTopic()
	of.Topic = topic
	of.TopicID = id
	of.Partitions = append(of.Partitions, into)
	request := kmsg.NewPtrProduceRequest()
	request.SetVersion(version)
	request.Acks = -1
	request.TimeoutMillis = 30_000
	request.Topics = append(request.Topics, of)
	return request
}
