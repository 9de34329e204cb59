package orders

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// Broker is an odradek in a process of its own, for one test.
type Broker struct {
	t       *testing.T
	Address string
	control string
	token   string
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
	broker := &Broker{t: t}
	var address string
	if _, err := fmt.Fscanf(lines, "odradek http on %s token %s\n", &broker.control, &broker.token); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fscanf(lines, "odradek ready on %s\n", &address); err != nil {
		t.Fatal(err)
	}
	broker.Address = address
	return broker
}

// Ask sends a request to the control API and returns its answer.
func (broker *Broker) Ask(method, path string, body any) map[string]any {
	broker.t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		broker.t.Fatal(err)
	}
	request, err := http.NewRequest(method, broker.control+"/v1"+path, bytes.NewReader(data))
	if err != nil {
		broker.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+broker.token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		broker.t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		broker.t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		broker.t.Fatalf("%s %s: %s", method, path, answer)
	}
	var found map[string]any
	if err := json.Unmarshal(answer, &found); err != nil {
		broker.t.Fatal(err)
	}
	return found
}

type object = map[string]any
