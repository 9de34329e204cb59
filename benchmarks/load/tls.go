package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// tlsConfig trusts the authority that -ca names; without -ca there is no TLS, and no configuration.
func (c *common) tlsConfig() (*tls.Config, error) {
	if c.ca == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(c.ca)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", c.ca)
	}
	return &tls.Config{RootCAs: pool, ServerName: "localhost"}, nil
}

// secured gives the connection itself, or TLS over it where -ca is given.
func (c *common) secured(conn net.Conn) (net.Conn, error) {
	config, err := c.tlsConfig()
	if err != nil || config == nil {
		return conn, err
	}
	secured := tls.Client(conn, config)
	return secured, secured.Handshake()
}

// runHandshakes measures how many connections a second a broker takes by TLS: each a full handshake, none resumed,
// and one ApiVersions, whose answer shows that the broker is through with it, too.
func runHandshakes(args []string) (*result, error) {
	c := newCommon("handshakes")
	requests := c.flags.Int("requests", 1000, "connections to make")
	connections := c.flags.Int("connections", 4, "connections that are made at a time")
	ctx, cancel, err := c.parse(args)
	if err != nil {
		return nil, err
	}
	defer cancel()
	if c.ca == "" {
		return nil, errors.New("handshakes need -ca")
	}
	each := max(*requests / *connections, 1)
	failures := make(chan error, *connections)
	measuring, err := startSpan(c.pids)
	if err != nil {
		return nil, err
	}
	var all sync.WaitGroup
	for range *connections {
		all.Go(func() {
			for range each {
				if err := c.shakeHands(ctx); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	all.Wait()
	measured, err := measuring.end(0)
	if err != nil {
		return nil, err
	}
	measured.Requests = each * *connections
	select {
	case err := <-failures:
		return nil, err
	default:
		return measured, nil
	}
}

func (c *common) shakeHands(ctx context.Context) error {
	conn, err := c.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	request := kmsg.NewPtrApiVersionsRequest()
	request.SetVersion(0)
	_, err = exchange(conn, request)
	return err
}
