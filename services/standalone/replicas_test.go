package standalone_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/coord"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/assistant"
	controlplane "github.com/mlp-platform/platform/services/control-plane"
	dashboard "github.com/mlp-platform/platform/services/dashboard-bff"
	"github.com/mlp-platform/platform/services/inference"
)

// variables are the variables of a configuration with their defaults.
func variables(t reflect.Type) map[string]string {
	all := map[string]string{}
	for i := range t.NumField() {
		f := t.Field(i)
		if name, _, _ := strings.Cut(f.Tag.Get("env"), ","); name != "" {
			all[name] = f.Tag.Get("envDefault")
		} else if f.Type.Kind() == reflect.Struct {
			for name, value := range variables(f.Type) {
				all[name] = value
			}
		}
	}
	return all
}

// rows are the cells of the table under a heading of docs/replicas.md, without its head.
func rows(t *testing.T, heading string) (table [][]string) {
	t.Helper()
	raw, err := os.ReadFile("../../docs/replicas.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(raw), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("docs/replicas.md has no heading %q", heading)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	for _, line := range strings.Split(rest, "\n") {
		if cells := strings.Split(line, "|"); strings.HasPrefix(line, "| ") {
			for i := range cells {
				cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
			}
			table = append(table, cells[1:len(cells)-1])
		}
	}
	if len(table) < 2 {
		t.Fatalf("no table under %q", heading)
	}
	return table[1:]
}

// withoutReplicas are the shared settings that are no different with several replicas.
var withoutReplicas = []string{"NATS_STREAM_MAX_BYTES", "EVENT_MAX_ATTEMPTS", "LOG_LEVEL"}

// docs/replicas.md names the variables that the code reads, with their defaults.
func TestReplicasManual(t *testing.T) {
	t.Parallel()
	services := map[string]map[string]string{
		"control-plane": variables(reflect.TypeFor[controlplane.Config]()), "inference": variables(reflect.TypeFor[inference.Config]()),
		"dashboard": variables(reflect.TypeFor[dashboard.Config]()), "assistant": variables(reflect.TypeFor[assistant.Config]()),
	}
	documented := map[string]bool{}
	for _, row := range rows(t, "Settings") {
		name, of, value := row[0], row[1], row[2]
		documented[name] = true
		for _, s := range strings.Split(of, ", ") {
			if got, known := services[s][name]; !known || got != value {
				t.Errorf("%s of %s: the page says %q, the code %q (read: %v)", name, s, value, got, known)
			}
		}
		for s, all := range services {
			if _, reads := all[name]; reads && !slices.Contains(strings.Split(of, ", "), s) {
				t.Errorf("%s reads %s; the page does not say so", s, name)
			}
		}
	}
	for name := range variables(reflect.TypeFor[service.Base]()) {
		if documented[name] == (slices.Contains(withoutReplicas, name) || strings.HasPrefix(name, "OTEL_")) {
			t.Errorf("%s is shared by all services: documented %v, want %v", name, documented[name], !documented[name])
		}
	}
}

// sources are the Go files of all services, without tests.
func sources(t *testing.T) (all string) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		raw, err := os.ReadFile(path)
		all += string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestReplicasManualListsLeases(t *testing.T) {
	t.Parallel()
	code := sources(t)
	var named int
	for _, row := range rows(t, "One replica at a time") {
		name, length, leads := strings.Cut(row[1], "`, ")
		if !leads {
			continue // the relay's lock
		}
		named++
		if !strings.Contains(code, `"`+name+`"`) {
			t.Errorf("no service has the lease %q", name)
		}
		if want := fmt.Sprintf("%d s", coord.LeadTime/time.Second); length != want {
			t.Errorf("lease %s: the page says %s, the code %s", name, length, want)
		}
	}
	calls := regexp.MustCompile(`coord\.Lead\([^\n]*`).FindAllString(code, -1)
	for _, call := range calls {
		if !strings.Contains(call, "coord.LeadTime") {
			t.Errorf("got %s, want a lease of coord.LeadTime", call)
		}
	}
	if len(calls) != named {
		t.Errorf("the page names %d leases, the code has %d", named, len(calls))
	}
	if coord.LeadTime+coord.LeadTime/3 >= 15*time.Second {
		t.Errorf("got %s, want less than 15 s without a holder", coord.LeadTime+coord.LeadTime/3)
	}
}

func TestReplicasManualListsBlockers(t *testing.T) {
	t.Parallel()
	var got, want []string
	for _, row := range rows(t, "Blockers") {
		got = append(got, row[0])
	}
	raw, err := os.ReadFile("../control-plane/internal/health/http.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`block\(.*"(\w+)"\)`).FindAllStringSubmatch(string(raw), -1) {
		want = append(want, m[1])
	}
	want = append(want, "sample_cluster")
	if !slices.Equal(got, want) {
		t.Errorf("the page lists %v, the code %v", got, want)
	}
}
