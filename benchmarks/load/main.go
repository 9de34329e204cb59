// Command load puts one kind of load on one broker and prints one line of JSON
// that says how that went. It is compiled, and spends as little CPU per record
// as it can, because it shares the machine with the broker it measures.
//
// Each subcommand makes its own topic and deletes it when it is done (consume
// reads a topic that `produce -keep` left, fetch-offsets what commit-offsets did).
// Times are taken around the load itself: connecting and topic creation are
// outside, except in first-record, first-replicated and fetch-offsets, whose whole point it is when
// a broker that starts can be used. With -pid the broker's CPU time (user +
// system, every thread) over that same span is reported too.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"
)

// subcommands maps a name to what runs it: arguments in, result or error out.
var subcommands = map[string]func(args []string) (*result, error){
	"produce":         runProduce,
	"consume":         runConsume,
	"small-batches":   runSmallBatches,
	"latency":         runLatency,
	"transactions":    runTransactions,
	"heartbeats":      runHeartbeats,
	"commits":         runCommits,
	"handshakes":      runHandshakes,
	"group-rebalance": runGroupRebalance,
	"consumer-group":  runConsumerGroup,
	"share-consume":   runShareConsume,
	"commit-offsets":  runCommitOffsets,
	"fetch-offsets":   runFetchOffsets,
	"first-record":    runFirstRecord,
	"delete-topic":    runDeleteTopic,

	"consumer-heartbeats":  runConsumerHeartbeats,
	"first-replicated":     runFirstReplicated,
	"await-in-sync":        runAwaitInSync,
	"failover-produce":     runFailoverProduce,
	"failover-commit":      runFailoverCommit,
	"failover-transaction": runFailoverTransaction,
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "serve-kfake" {
		if err := serveKfake(os.Args[2:]); err != nil {
			fail(err)
		}
		return
	}
	if len(os.Args) < 2 || subcommands[os.Args[1]] == nil {
		fmt.Fprintf(os.Stderr, "usage: load {%s} -broker HOST:PORT [flags]; load SUBCOMMAND -h lists the flags\n", names())
		os.Exit(2)
	}
	measured, err := subcommands[os.Args[1]](os.Args[2:])
	if err != nil {
		fail(err)
	}
	measured.Load = os.Args[1]
	if err := json.NewEncoder(os.Stdout).Encode(measured); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintf(os.Stderr, "load: %v\n", err)
	os.Exit(1)
}

func names() string {
	all := []string{"serve-kfake"}
	for name := range subcommands {
		all = append(all, name)
	}
	sort.Strings(all)
	return strings.Join(all, "|")
}
