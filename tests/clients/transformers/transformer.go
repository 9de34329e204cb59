// As transformer.py with the step "again": name, address, source, target.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	name, source, target := os.Args[1], os.Args[3], os.Args[4]
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(strings.Split(os.Args[2], ",")...),
		kgo.TransactionalID(name),
		kgo.ConsumerGroup("transformers of "+source),
		kgo.ConsumeTopics(source),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RequireStableFetchOffsets(),
	)
	must(err)
	defer session.Close()
	for session.PollFetches(ctx).NumRecords() == 0 {
		must(ctx.Err())
	}
	must(session.Begin())
	write := func() error {
		return session.ProduceSync(ctx, &kgo.Record{Topic: target, Value: []byte(name)}).FirstErr()
	}
	must(write())
	fmt.Println("waits")
	os.Stdin.Read(make([]byte, 1))
	must(write())
	committed, err := session.End(ctx, kgo.TryCommit)
	must(err)
	if committed {
		fmt.Println("committed")
	}
}
