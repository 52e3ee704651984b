//go:build e2e

// Package rules checks the alert rules with Prometheus's own tool: they parse, and each fires where it should and stays
// silent just below. The services test that the metrics exist.
package rules

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/goccy/go-yaml"
)

const folder = "../../deploy/prometheus"

func ruleFiles(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, pattern))
	if err != nil || len(found) == 0 {
		t.Fatalf("%s: %v, %v; want len(found) != 0", pattern, found, err)
	}
	return found
}

func runPromtool(t *testing.T, args ...string) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		t.Fatal("promtool is not installed; `scripts/setup.sh e2e` installs it")
	}
	if out, err := exec.Command(path, args...).CombinedOutput(); err != nil {
		t.Fatalf("promtool %v: %v\n%s", args, err, out)
	}
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func TestConfigAndRulesParse(t *testing.T) {
	runPromtool(t, "check", "config", filepath.Join(folder, "prometheus.yml")) // and the rules it names
	runPromtool(t, append([]string{"check", "rules", "--lint=all", "--lint-fatal"}, ruleFiles(t, "rules/*.yaml")...)...)
}

func TestRulesFire(t *testing.T) {
	runPromtool(t, append([]string{"test", "rules"}, ruleFiles(t, "tests/*.yaml")...)...)
}

// Every alert states its subject, the condition and the remedy, is in the manual, and is tested firing and not firing.
func TestEveryAlertIsToldAndTried(t *testing.T) {
	type tried struct{ fires, silent bool }
	seen := map[string]*tried{}
	for _, path := range ruleFiles(t, "tests/*.yaml") {
		var doc struct {
			Tests []struct {
				Alerts []struct {
					Name     string `yaml:"alertname"`
					Expected []any  `yaml:"exp_alerts"`
				} `yaml:"alert_rule_test"`
			}
		}
		readYAML(t, path, &doc)
		for _, test := range doc.Tests {
			for _, a := range test.Alerts {
				if seen[a.Name] == nil {
					seen[a.Name] = &tried{}
				}
				seen[a.Name].fires = seen[a.Name].fires || len(a.Expected) > 0
				seen[a.Name].silent = seen[a.Name].silent || len(a.Expected) == 0
			}
		}
	}
	manual, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	alerts := 0
	for _, path := range ruleFiles(t, "rules/*.yaml") {
		var doc struct {
			Groups []struct {
				Rules []struct {
					Alert               string
					Labels, Annotations map[string]string
				}
			}
		}
		readYAML(t, path, &doc)
		for _, g := range doc.Groups {
			for _, r := range g.Rules {
				if r.Alert == "" {
					continue
				}
				alerts++
				if !slices.Contains([]string{"critical", "error", "warn"}, r.Labels["severity"]) {
					t.Errorf(`%s: severity %q; want slices.Contains([]string{"critical", "error", "warn"}, r.Labels["severity"])`, r.Alert, r.Labels["severity"])
				}
				for _, name := range []string{"summary", "description", "runbook"} {
					if r.Annotations[name] == "" {
						t.Errorf(`%s has no %s; want r.Annotations[name] != ""`, r.Alert, name)
					}
				}
				if !bytes.Contains(manual, []byte("`"+r.Alert+"`")) {
					t.Errorf("%s is not in the manual; want it in docs/operations.md", r.Alert)
				}
				if got := seen[r.Alert]; got == nil || !got.fires || !got.silent {
					t.Errorf("%s is not tried both ways: %+v; want got != nil && got.fires && got.silent", r.Alert, got)
				}
			}
		}
	}
	if alerts < 18 {
		t.Errorf("only %d alerts; want alerts >= 18", alerts)
	}
}
