package main

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// What benchmarks.fixtures measures of kfake: each subtest starts a broker of its
// own, in memory and in the test's process, has a record acknowledged, and prints
// how long that took. The harness chooses one of the two.

func TestInARow(t *testing.T) {
	for i := 0; i < 100; i++ {
		t.Run("", firstAcknowledged)
	}
}

func TestSideBySide(t *testing.T) {
	for i := 0; i < 20; i++ {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			firstAcknowledged(t)
		})
	}
}

func firstAcknowledged(t *testing.T) {
	begin := time.Now()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	conn, err := net.Dial("tcp", cluster.ListenAddrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := makeTopic(conn, "orders", 1); err != nil {
		t.Fatal(err)
	}
	if err := produceOne(conn, "orders", buildBatch([][]byte{[]byte("a record")}, time.Now())); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("took %.3f ms\n", time.Since(begin).Seconds()*1e3)
}
