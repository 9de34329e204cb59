package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// common are the flags every load takes.
type common struct {
	flags      *flag.FlagSet
	broker     string
	ca         string
	topic      string
	partitions int
	replicas   int
	pids       []int
	timeout    time.Duration
	keep       bool
	configs    []kmsg.CreateTopicsRequestTopicConfig
}

func newCommon(name string) *common {
	c := &common{flags: flag.NewFlagSet(name, flag.ExitOnError)}
	c.flags.StringVar(&c.broker, "broker", "127.0.0.1:9092", "HOST:PORT of the broker; several of a cluster, separated by commas")
	c.flags.StringVar(&c.ca, "ca", "", "a file with the authority's certificate: speak TLS")
	c.flags.StringVar(&c.topic, "topic", "", "topic to use; made anew under a random name when empty")
	c.flags.IntVar(&c.partitions, "partitions", 6, "partitions of the topic")
	c.flags.IntVar(&c.replicas, "replicas", 1, "replicas of each partition")
	c.flags.Func("pid", "processes whose CPU time is reported (the brokers'), separated by commas", func(list string) error {
		for _, word := range strings.Split(list, ",") {
			pid, err := strconv.Atoi(word)
			if err != nil {
				return err
			}
			if pid != 0 {
				c.pids = append(c.pids, pid)
			}
		}
		return nil
	})
	c.flags.DurationVar(&c.timeout, "timeout", time.Minute, "give up after this long")
	c.flags.BoolVar(&c.keep, "keep", false, "leave the topic behind")
	c.flags.Func("config", "NAME=VALUE, a config of the topic; as often as there are configs", func(pair string) error {
		name, value, found := strings.Cut(pair, "=")
		if !found {
			return fmt.Errorf("%q is no NAME=VALUE", pair)
		}
		config := kmsg.NewCreateTopicsRequestTopicConfig()
		config.Name, config.Value = name, kmsg.StringPtr(value)
		c.configs = append(c.configs, config)
		return nil
	})
	return c
}

// parse reads the flags and gives the context that ends the load at its timeout.
func (c *common) parse(args []string) (context.Context, context.CancelFunc, error) {
	if err := c.flags.Parse(args); err != nil {
		return nil, nil, err
	}
	if c.topic == "" {
		suffix := make([]byte, 6)
		if _, err := rand.Read(suffix); err != nil {
			return nil, nil, err
		}
		c.topic = "bench-" + hex.EncodeToString(suffix)
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	return ctx, cancel, nil
}

// readBroker says that the load is ready and reads the broker's address from standard input, unless -broker gave it.
func (c *common) readBroker() error {
	if c.broker != "" {
		return nil
	}
	fmt.Println("ready")
	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	c.broker = strings.TrimSpace(line)
	return err
}

func (c *common) client(options ...kgo.Opt) (*kgo.Client, error) {
	config, err := c.tlsConfig()
	if err != nil {
		return nil, err
	}
	if config != nil {
		options = append(options, kgo.DialTLSConfig(config))
	}
	return kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(strings.Split(c.broker, ",")...),
		kgo.ClientID("odradek-bench"),
		kgo.DefaultProduceTopic(c.topic),
		// A topic made a moment ago is looked up again soon, not after 5 s.
		kgo.MetadataMinAge(10 * time.Millisecond),
	}, options...)...)
}

func (c *common) createTopic(ctx context.Context, cl *kgo.Client) error {
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic = c.topic
	topic.NumPartitions = int32(c.partitions)
	topic.ReplicationFactor = int16(c.replicas)
	topic.Configs = c.configs
	request := kmsg.NewPtrCreateTopicsRequest()
	request.Topics = append(request.Topics, topic)
	request.TimeoutMillis = 10_000
	response, err := request.RequestWith(ctx, cl)
	if err != nil {
		return err
	}
	if err := kerr.ErrorForCode(response.Topics[0].ErrorCode); err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
		return fmt.Errorf("creating topic %s: %w", c.topic, err)
	}
	return nil
}

// dropTopic deletes the topic unless -keep was given, so that what one load
// wrote is not still being flushed to disk under the next.
func (c *common) dropTopic(ctx context.Context, cl *kgo.Client) error {
	if c.keep {
		return nil
	}
	topic := kmsg.NewDeleteTopicsRequestTopic()
	topic.Topic = kmsg.StringPtr(c.topic)
	request := kmsg.NewPtrDeleteTopicsRequest()
	request.Topics = append(request.Topics, topic)
	request.TopicNames = []string{c.topic}
	request.TimeoutMillis = 10_000
	response, err := request.RequestWith(ctx, cl)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(response.Topics[0].ErrorCode)
}

func runDeleteTopic(args []string) (*result, error) {
	c := newCommon("delete-topic")
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
	begin := time.Now()
	if err := c.dropTopic(ctx, cl); err != nil {
		return nil, err
	}
	return &result{Topic: c.topic, Seconds: time.Since(begin).Seconds()}, nil
}

// payload is random, hence incompressible, and made once: each record's value
// is a window into it, so that a value costs the client nothing.
type payload struct {
	block []byte
	size  int
}

func newPayload(size int) (*payload, error) {
	block := make([]byte, 1<<20+size)
	if _, err := rand.Read(block); err != nil {
		return nil, err
	}
	return &payload{block, size}, nil
}

// value gives the i-th record's value.
func (p *payload) value(i int) []byte {
	at := (i * 127) & (1<<20 - 1)
	return p.block[at : at+p.size : at+p.size]
}
