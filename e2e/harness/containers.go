package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Container is a running container of the platform.
type Container struct{ ID, Name, Address string }

// TryUp runs scripts/up.sh for the stack that the environment describes, and returns its trimmed output.
func TryUp(t testing.TB, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(filepath.Join(Root(t), "scripts", "up.sh"), args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args[1:], " "), err, stderr.Bytes())
	}
	return strings.TrimSpace(string(out)), nil
}

// Containers lists the running containers of a service, with an address reachable from this machine.
func Containers(t testing.TB, service string) (all []Container) {
	t.Helper()
	ids, err := TryUp(t, "compose", "ps", "-q", service)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range strings.Fields(ids) {
		text, err := TryUp(t, "docker", "inspect", id)
		if err != nil {
			t.Fatal(err)
		}
		var facts []struct {
			Name            string
			NetworkSettings struct {
				Networks map[string]struct{ IPAddress string }
			}
		}
		if err := json.Unmarshal([]byte(text), &facts); err != nil {
			t.Fatal(err)
		}
		c := Container{ID: id, Name: strings.TrimPrefix(facts[0].Name, "/")}
		for _, n := range facts[0].NetworkSettings.Networks {
			c.Address = n.IPAddress
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Container) int { return strings.Compare(a.Name, b.Name) })
	return all
}
