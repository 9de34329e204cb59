package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func runAll(pipelines []*pipeline, each, window int) error {
	done := make(chan error, len(pipelines))
	for _, p := range pipelines {
		go func() { done <- p.run(each, window) }()
	}
	var failures []error
	for range pipelines {
		failures = append(failures, <-done)
	}
	return errors.Join(failures...)
}

// pipeline is one connection with many requests in flight, the same few over and over. One goroutine
// both writes and reads: for every response it has read it owes one request, and
// it pays in one write whatever one read brought.
type pipeline struct {
	conn     net.Conn
	requests [][]byte
	// errorAt is where a response's one error code stands, counted from its length prefix.
	errorAt int
	burst   []byte
	sent    int
	done    int
}

func newPipeline(conn net.Conn, request kmsg.Request, errorAt int) *pipeline {
	return newRotatingPipeline(conn, []kmsg.Request{request}, errorAt)
}

// newRotatingPipeline sends each of the requests in turn.
func newRotatingPipeline(conn net.Conn, requests []kmsg.Request, errorAt int) *pipeline {
	p := &pipeline{conn: conn, errorAt: errorAt}
	for _, request := range requests {
		p.requests = append(p.requests, formatter.AppendRequest(nil, request, 0))
	}
	return p
}

// run sends count requests, at most window of them unanswered at a time.
func (p *pipeline) run(count, window int) error {
	if err := p.send(min(window, count)); err != nil {
		return err
	}
	buffer := make([]byte, 64<<10)
	filled := 0
	for p.done < count {
		n, err := p.conn.Read(buffer[filled:])
		if err != nil {
			return fmt.Errorf("after %d of %d responses: %w", p.done, count, err)
		}
		filled += n
		taken, answered, err := p.take(buffer[:filled])
		if err != nil {
			return err
		}
		filled = copy(buffer, buffer[taken:filled])
		if err := p.send(min(answered, count-p.sent)); err != nil {
			return err
		}
	}
	return nil
}

func (p *pipeline) send(count int) error {
	if count == 0 {
		return nil
	}
	p.burst = p.burst[:0]
	for range count {
		start := len(p.burst)
		p.burst = append(p.burst, p.requests[p.sent%len(p.requests)]...)
		binary.BigEndian.PutUint32(p.burst[start+requestHead:], uint32(p.sent))
		p.sent++
	}
	_, err := p.conn.Write(p.burst)
	return err
}

// take checks the whole responses in data; it gives the bytes and the responses taken.
func (p *pipeline) take(data []byte) (taken, answered int, err error) {
	for len(data)-taken >= 4 {
		frame := data[taken:]
		length := 4 + int(binary.BigEndian.Uint32(frame))
		if len(frame) < length {
			break
		}
		if length < p.errorAt+2 {
			return taken, answered, fmt.Errorf("response of %d bytes, too short for an error code", length)
		}
		if correlation := binary.BigEndian.Uint32(frame[4:]); correlation != uint32(p.done) {
			return taken, answered, fmt.Errorf("correlation id %d where %d was due", correlation, p.done)
		}
		if code := int16(binary.BigEndian.Uint16(frame[p.errorAt:])); code != 0 {
			return taken, answered, kerr.ErrorForCode(code)
		}
		taken += length
		answered++
		p.done++
	}
	return taken, answered, nil
}
