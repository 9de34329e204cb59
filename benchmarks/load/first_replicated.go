package main

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// askEvery is how soon a cluster that has answered, and is not ready yet, is asked again.
const askEvery = 5 * time.Millisecond

var errNotAllThere = errors.New("not all brokers are there")

// runFirstReplicated is first-record for a cluster that starts: it tells when -replicas brokers are there, a topic
// of as many replicas is made, all of them in sync, and a record is acknowledged with acks=all and fetched back.
func runFirstReplicated(args []string) (*result, error) {
	c := newCommon("first-replicated")
	ctx, cancel, err := c.parse(args)
	if err != nil {
		return nil, err
	}
	defer cancel()
	if err := c.readBroker(); err != nil {
		return nil, err
	}
	addresses := strings.Split(c.broker, ",")
	begin := time.Now()
	var last error
	for turn := 0; ctx.Err() == nil; turn++ {
		last = c.firstReplicated(addresses[turn%len(addresses)], begin.Add(c.timeout))
		if last == nil {
			return &result{Records: 1, Topic: c.topic, Seconds: time.Since(begin).Seconds()}, nil
		}
		if errors.Is(last, errNotThere) {
			return nil, last // the cluster is up, and at fault
		}
		time.Sleep(retryEvery)
	}
	return nil, fmt.Errorf("no first record within %s: %w", c.timeout, last)
}

func (c *common) firstReplicated(address string, deadline time.Time) error {
	conn, err := dialUntil(address, deadline)
	if err != nil {
		return err
	}
	defer conn.Close()
	leader, err := c.replicatedLeader(conn, deadline)
	if err != nil {
		return err
	}
	toLeader, err := dialUntil(leader, deadline)
	if err != nil {
		return err
	}
	defer toLeader.Close()
	value := []byte("the first record of this cluster")
	batch := buildBatch([][]byte{value}, time.Now())
	for {
		err := produceOne(toLeader, c.topic, batch)
		if err == nil {
			break
		}
		if !kerr.IsRetriable(err) || errors.Is(err, kerr.NotLeaderForPartition) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(retryEvery)
	}
	return fetchOne(toLeader, c.topic, value)
}

// replicatedLeader makes the topic when all brokers are there, and gives its leader's address when all replicas are in sync.
func (c *common) replicatedLeader(conn net.Conn, deadline time.Time) (string, error) {
	last := errNotAllThere
	for made := false; time.Now().Before(deadline); time.Sleep(askEvery) {
		nodes, topic, err := askMetadata(conn, c.topic)
		if err != nil {
			return "", err
		}
		if len(nodes) < c.replicas {
			continue
		}
		if !made {
			last = makeTopic(conn, c.topic, int16(c.replicas))
			made = last == nil
			continue
		}
		if topic.ErrorCode == 0 && len(topic.Partitions) == 1 && len(topic.Partitions[0].ISR) == c.replicas {
			if leader, found := nodes[topic.Partitions[0].Leader]; found {
				return leader, nil
			}
		}
	}
	return "", last
}

// askMetadata gives the brokers' addresses by their ids, and the topic as the broker knows it.
func askMetadata(conn net.Conn, topic string) (map[int32]string, kmsg.MetadataResponseTopic, error) {
	of := kmsg.NewMetadataRequestTopic()
	of.Topic = kmsg.StringPtr(topic)
	request := kmsg.NewPtrMetadataRequest()
	request.SetVersion(9)
	request.Topics = append(request.Topics, of)
	response, err := exchange(conn, request)
	if err != nil {
		return nil, kmsg.MetadataResponseTopic{}, err
	}
	metadata := response.(*kmsg.MetadataResponse)
	nodes := make(map[int32]string)
	for _, broker := range metadata.Brokers {
		nodes[broker.NodeID] = fmt.Sprintf("%s:%d", broker.Host, broker.Port)
	}
	if len(metadata.Topics) != 1 {
		return nil, kmsg.MetadataResponseTopic{}, fmt.Errorf("metadata gave %d topics", len(metadata.Topics))
	}
	return nodes, metadata.Topics[0], nil
}

func dialUntil(address string, deadline time.Time) (net.Conn, error) {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return nil, err
	}
	return conn, conn.SetDeadline(deadline)
}
