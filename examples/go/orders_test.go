package orders

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func client(t *testing.T, broker *Broker, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	// A producer that is refused looks for new metadata before it tries again, every five seconds by default.
	options = append(options, kgo.SeedBrokers(broker.Address), kgo.MetadataMinAge(50*time.Millisecond))
	client, err := kgo.NewClient(options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func produce(t *testing.T, client *kgo.Client, value string) {
	t.Helper()
	record := &kgo.Record{Topic: "orders", Value: []byte(value)}
	if err := client.ProduceSync(context.Background(), record).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// A fault: the broker lacks replicas twice, and the client tries again.
func TestAnOrderArrivesThoughReplicasAreMissing(t *testing.T) {
	broker := StartBroker(t)
	broker.Ask("POST", "/topics", object{"name": "orders"})
	fault := broker.Ask("POST", "/faults", object{"api": "Produce", "error": "NOT_ENOUGH_REPLICAS", "times": 2})

	produce(t, client(t, broker), "an order")

	fault = broker.Ask("GET", "/faults/"+fault["fault"].(string), nil)
	if fault["hits"] != 2.0 {
		t.Fatalf("the fault has fired %v times", fault["hits"])
	}
	if records := broker.Ask("GET", "/topics/orders/records", nil)["records"].([]any); len(records) != 1 {
		t.Fatalf("there are %d records", len(records))
	}
}

// A time jump: eight days later retention has taken the old order.
func TestAnOrderIsForgottenAfterAWeek(t *testing.T) {
	broker := StartBroker(t)
	broker.Ask("POST", "/topics", object{"name": "orders"})
	producer := client(t, broker)
	produce(t, producer, "old")
	broker.Ask("POST", "/clock/advance", object{"days": 8})
	produce(t, producer, "new")

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	consumer := client(t, broker, kgo.ConsumeTopics("orders"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	fetched := consumer.PollFetches(ctx)
	if err := fetched.Err(); err != nil {
		t.Fatal(err)
	}
	if first := string(fetched.Records()[0].Value); first != "new" {
		t.Fatalf("the first order is %q", first)
	}
}
