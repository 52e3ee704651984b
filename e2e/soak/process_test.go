//go:build soak

package soak

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/e2e/harness"
)

// process is one whose memory and goroutines are watched.
type process struct {
	name, url          string
	started            string // its reported start
	memory, goroutines []float64
}

// findProcesses lists each replica of each service, or with SOAK_TARGET=platform the one process. The tracker, the
// orchestrator and the data services do not run on Go's runtime or report less about themselves; the worker and the
// evidence API can be reached only inside their containers.
func findProcesses(t *testing.T) (all []*process) {
	t.Helper()
	switch target := os.Getenv("SOAK_TARGET"); target {
	case "platform":
		return []*process{{name: "platform", url: setting(t, "CONTROL_PLANE_URL")}}
	case "containers", "":
	default:
		t.Fatalf("SOAK_TARGET is %q; it must be containers or platform", target)
	}
	for _, service := range [][2]string{{"control-plane", "18002"}, {"inference", "18001"}, {"dashboard", "8099"}, {"assistant", "18004"}, {"bus-bridge", "18003"}} {
		replicas := harness.Containers(t, service[0])
		if len(replicas) == 0 {
			t.Fatalf("%s does not run; make up starts the containers, SOAK_TARGET=platform is for make run", service[0])
		}
		for i, c := range replicas {
			all = append(all, &process{name: fmt.Sprintf("%s %d", service[0], i+1), url: "http://" + net.JoinHostPort(c.Address, service[1])})
		}
	}
	return all
}

func setting(t *testing.T, name string) string {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		t.Fatalf("%s is not set; scripts/soak.sh sets it", name)
	}
	return v
}

// sample adds the current usage of the process.
func (p *process) sample() (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", p.name, err)
		}
	}()
	answer, err := harness.TryCall(http.MethodGet, p.url+"/metrics", "", nil, "Host", "localhost")
	if err != nil {
		return err
	}
	if answer.Status != http.StatusOK {
		return fmt.Errorf("%d %.200s", answer.Status, answer.Body)
	}
	values := map[string]string{}
	for line := range strings.Lines(string(answer.Body)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			values[name] = value
		}
	}
	started := values["process_start_time_seconds"]
	if p.started != "" && p.started != started {
		p.started = started
		return errors.New("it was started again")
	}
	p.started = started
	memory, err := strconv.ParseFloat(values["process_resident_memory_bytes"], 64)
	if err != nil {
		return fmt.Errorf("process_resident_memory_bytes: %w", err)
	}
	goroutines, err := strconv.ParseFloat(values["go_goroutines"], 64)
	if err != nil {
		return fmt.Errorf("go_goroutines: %w", err)
	}
	p.memory, p.goroutines = append(p.memory, memory), append(p.goroutines, goroutines)
	return nil
}
