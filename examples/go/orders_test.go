package orders

import (
	"context"
	"testing"
	"time"

	"github.com/go-faster/jx"
	"github.com/twmb/franz-go/pkg/kgo"

	"odradek/examples/go/control"
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

func createOrders(t *testing.T, broker *Broker) {
	t.Helper()
	if _, err := broker.Control.PostTopics(t.Context(), &control.PostTopicsReq{Name: "orders"}); err != nil {
		t.Fatal(err)
	}
}

// A fault: the broker lacks replicas twice, and the client tries again.
func TestAnOrderArrivesThoughReplicasAreMissing(t *testing.T) {
	broker := StartBroker(t)
	createOrders(t, broker)
	rule := control.PostFaultsReq{"api": jx.Raw(`"Produce"`), "error": jx.Raw(`"NOT_ENOUGH_REPLICAS"`), "times": jx.Raw(`2`)}
	fault, err := broker.Control.PostFaults(t.Context(), rule)
	if err != nil {
		t.Fatal(err)
	}

	produce(t, client(t, broker), "an order")

	fault, err = broker.Control.GetFaultsFault(t.Context(), control.GetFaultsFaultParams{Fault: fault.Fault})
	if err != nil || fault.Hits != 2 {
		t.Fatalf("the fault has fired %v times: %v", fault, err)
	}
	found, err := broker.Control.GetTopicsTopicRecords(t.Context(), control.GetTopicsTopicRecordsParams{Topic: "orders"})
	if err != nil || len(found.Records) != 1 {
		t.Fatalf("there are %v: %v", found, err)
	}
}

// A time jump: eight days later retention has taken the old order.
func TestAnOrderIsForgottenAfterAWeek(t *testing.T) {
	broker := StartBroker(t)
	createOrders(t, broker)
	producer := client(t, broker)
	produce(t, producer, "old")
	week := control.PostClockAdvanceReq{Days: control.NewOptFloat64(8)}
	if _, err := broker.Control.PostClockAdvance(t.Context(), control.NewOptPostClockAdvanceReq(week)); err != nil {
		t.Fatal(err)
	}
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
