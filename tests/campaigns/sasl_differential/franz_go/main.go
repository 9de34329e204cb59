// A client of franz-go's that asks one broker: address, mechanism, then user and password, or a token. It tells how it went.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

func mechanism(name string, secrets []string) sasl.Mechanism {
	switch name {
	case "PLAIN":
		return plain.Auth{User: secrets[0], Pass: secrets[1]}.AsMechanism()
	case "SCRAM-SHA-256":
		return scram.Auth{User: secrets[0], Pass: secrets[1]}.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return scram.Auth{User: secrets[0], Pass: secrets[1]}.AsSha512Mechanism()
	}
	return oauth.Auth{Token: secrets[0]}.AsMechanism()
}

func main() {
	client, err := kgo.NewClient(kgo.SeedBrokers(os.Args[1]), kgo.SASL(mechanism(os.Args[2], os.Args[3:])))
	if err != nil {
		panic(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := client.Ping(ctx); err != nil {
		fmt.Printf("%T: %v\n", err, err)
		return
	}
	fmt.Println("let in")
}
