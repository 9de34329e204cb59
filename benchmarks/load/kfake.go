package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/twmb/franz-go/pkg/kfake"
)

// serveKfake runs franz-go's own broker for tests, on disk, as a third peer:
// what the same protocol costs when it is compiled.
func serveKfake(args []string) error {
	flags := flag.NewFlagSet("serve-kfake", flag.ExitOnError)
	port := flags.Int("port", 0, "port on 127.0.0.1")
	dataDir := flags.String("data-dir", "", "directory for its data")
	if err := flags.Parse(args); err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(*port), kfake.DataDir(*dataDir))
	if err != nil {
		return err
	}
	defer cluster.Close()
	fmt.Printf("kfake ready on %s\n", cluster.ListenAddrs()[0])
	<-stop
	return nil
}
