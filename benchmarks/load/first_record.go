package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// retryEvery is how soon a broker that is still starting is asked again.
const retryEvery = time.Millisecond

var errNotThere = errors.New("what was fetched is not the record that was produced")

// runFirstRecord tells, by printing its result, when a starting broker has made a
// topic, taken a record with acks=all and given it back. Started before the broker,
// it reads the address from its standard input when -broker is empty, and then asks
// until it is answered.
func runFirstRecord(args []string) (*result, error) {
	c := newCommon("first-record")
	ctx, cancel, err := c.parse(args)
	if err != nil {
		return nil, err
	}
	defer cancel()
	if err := c.readBroker(); err != nil {
		return nil, err
	}
	begin := time.Now()
	var last error
	for ctx.Err() == nil {
		last = c.firstRecord(begin.Add(c.timeout))
		if last == nil {
			return &result{Records: 1, Topic: c.topic, Seconds: time.Since(begin).Seconds()}, nil
		}
		if errors.Is(last, kerr.UnknownServerError) || errors.Is(last, errNotThere) {
			return nil, last // the broker is up, and at fault
		}
		time.Sleep(retryEvery)
	}
	return nil, fmt.Errorf("no first record within %s: %w", c.timeout, last)
}

// firstRecord does the whole way on one connection, from the topic to the record read back.
func (c *common) firstRecord(deadline time.Time) error {
	conn, err := net.DialTimeout("tcp", c.broker, time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}
	if conn, err = c.secured(conn); err != nil {
		return err
	}
	if err := makeTopic(conn, c.topic, 1); err != nil {
		return err
	}
	value := []byte("the first record of this broker")
	batch := buildBatch([][]byte{value}, time.Now())
	for {
		err := produceOne(conn, c.topic, batch)
		if err == nil {
			break
		}
		if !kerr.IsRetriable(err) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(retryEvery)
	}
	return fetchOne(conn, c.topic, value)
}

func makeTopic(conn net.Conn, name string, replicas int16) error {
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic = name
	topic.NumPartitions = 1
	topic.ReplicationFactor = replicas
	request := kmsg.NewPtrCreateTopicsRequest()
	request.SetVersion(7)
	request.TimeoutMillis = 10_000
	request.Topics = append(request.Topics, topic)
	response, err := exchange(conn, request)
	if err != nil {
		return err
	}
	err = kerr.ErrorForCode(response.(*kmsg.CreateTopicsResponse).Topics[0].ErrorCode)
	if errors.Is(err, kerr.TopicAlreadyExists) {
		return nil
	}
	return err
}

func produceOne(conn net.Conn, topic string, batch []byte) error {
	response, err := exchange(conn, produceRequest(12, topic, [16]byte{}, 0, batch))
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(response.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode)
}

// fetchOne reads offset 0 with Fetch 12, the last version that names topics.
func fetchOne(conn net.Conn, topic string, value []byte) error {
	partition := kmsg.NewFetchRequestTopicPartition()
	partition.PartitionMaxBytes = 1 << 20
	of := kmsg.NewFetchRequestTopic()
	of.Topic = topic
	of.Partitions = append(of.Partitions, partition)
	request := kmsg.NewPtrFetchRequest()
	request.SetVersion(12)
	request.MaxWaitMillis = 500
	request.MinBytes = 1
	request.MaxBytes = 1 << 20
	request.SessionEpoch = -1
	request.Topics = append(request.Topics, of)
	response, err := exchange(conn, request)
	if err != nil {
		return err
	}
	topics := response.(*kmsg.FetchResponse).Topics
	if len(topics) != 1 || len(topics[0].Partitions) != 1 {
		return fmt.Errorf("fetch gave %d topics", len(topics))
	}
	got := topics[0].Partitions[0]
	if err := kerr.ErrorForCode(got.ErrorCode); err != nil {
		return err
	}
	if !bytes.Contains(got.RecordBatches, value) {
		return fmt.Errorf("%w (%d bytes)", errNotThere, len(got.RecordBatches))
	}
	return nil
}
