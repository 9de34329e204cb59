package orders

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"odradek/examples/go/control"
)

//go:generate go tool ogen --config ogen.yml --target control --package control --clean ../openapi.json

// Broker is an odradek in a process of its own, for one test.
type Broker struct {
	Address string
	// Control is the control API, generated from the OpenAPI document: go generate
	Control *control.Client
}

// StartBroker starts one in memory, on free ports; it ends with the test. ODRADEK is the command, "odradek" if it is not set.
func StartBroker(t *testing.T) *Broker {
	t.Helper()
	words := strings.Fields(os.Getenv("ODRADEK"))
	if len(words) == 0 {
		words = []string{"odradek"}
	}
	words = append(words, "serve", "--in-memory", "--port", "0", "--http-port", "0")
	process := exec.Command(words[0], words[1:]...)
	process.Stderr = os.Stderr
	output, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		process.Process.Signal(syscall.SIGTERM)
		process.Wait()
	})
	lines := bufio.NewReader(output)
	var url, secret, address string
	if _, err := fmt.Fscanf(lines, "odradek http on %s token %s\n", &url, &secret); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fscanf(lines, "odradek ready on %s\n", &address); err != nil {
		t.Fatal(err)
	}
	client, err := control.NewClient(url, token(secret))
	if err != nil {
		t.Fatal(err)
	}
	return &Broker{Address: address, Control: client}
}

// token is how the client authenticates.
type token string

func (token token) Token(context.Context, control.OperationName) (control.Token, error) {
	return control.Token{Token: string(token)}, nil
}
