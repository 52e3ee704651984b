//go:build e2e

package mlp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
	"github.com/mlp-platform/platform/libs/tracker"
)

// Row 33: Ctrl-C in a long-running command ends it with exit code 1 and a document that reports what is done.
func checkInterrupts(t *testing.T, p *harness.Platform, mlp string) {
	vars := environment(t, p)
	t.Run("a training here leaves its run KILLED and registers nothing", func(t *testing.T) {
		client := tracker.New(vars["TRACKING_URI"], http.DefaultClient, tracker.Token(vars["MLFLOW_TRACKING_TOKEN"]))
		versions := countVersions(t, client)
		c := startCommand(t, mlp, vars, "pipeline", "run", "-m", "RuntimeClass")
		experiment, err := client.EnsureExperiment(t.Context(), "runtimeclass_ipscjobs")
		if err != nil {
			t.Fatal(err)
		}
		harness.Eventually(t, time.Minute, func() error {
			runs, _, err := client.SearchRuns(t.Context(), tracker.RunQuery{ExperimentIDs: []string{experiment.ID}, Filter: "attributes.status = 'RUNNING'"})
			if err == nil && len(runs) == 0 {
				err = errors.New("no run has begun")
			}
			return err
		})
		said := c.interrupt(t)
		id := regexp.MustCompile(`tracker run ([0-9a-f]{32}) is marked KILLED`).FindStringSubmatch(said)
		if id == nil {
			t.Fatalf("it says %q; want the tracker run that is marked KILLED", said)
		}
		if run, err := client.GetRun(t.Context(), id[1]); err != nil || run.Status != tracker.Killed {
			t.Errorf("the run is %s, %v; want KILLED", run.Status, err)
		}
		if now := countVersions(t, client); now != versions {
			t.Errorf("RUNTIMECLASS has %d versions, had %d before; want none registered", now, versions)
		}
	})
	t.Run("a followed run goes on", func(t *testing.T) {
		before := newestRun(t, mlp, vars)
		c := startCommand(t, mlp, vars, "retrain", "MACK", "--follow")
		run := ""
		harness.Eventually(t, time.Minute, func() error {
			if run = newestRun(t, mlp, vars); run == before {
				return errors.New("no run has begun")
			}
			return nil
		})
		if said := c.interrupt(t); !strings.Contains(said, "run "+run+" continues") {
			t.Errorf("it says %q; want that run %s continues", said, run)
		}
	})
	t.Run("a benchmark changes nothing", func(t *testing.T) {
		before := countProbes(t, p)
		c := startCommand(t, mlp, vars, "serve", "benchmark", "-n", "10000000", "--model", "RuntimeRegressor")
		harness.Eventually(t, time.Minute, func() error {
			if n := countProbes(t, p); n < before+50 {
				return fmt.Errorf("%d probes; want 50 more than %d", n, before)
			}
			return nil
		})
		if said := c.interrupt(t); !regexp.MustCompile(`interrupted after \d+ of 10000000 requests; nothing was changed`).MatchString(said) {
			t.Errorf("it says %q; want how many requests were made", said)
		}
	})
}

// command is a running mlp with --json.
type command struct {
	*exec.Cmd
	out bytes.Buffer
}

func startCommand(t *testing.T, mlp string, vars map[string]string, args ...string) *command {
	t.Helper()
	c := &command{Cmd: exec.CommandContext(t.Context(), mlp, append([]string{"--json"}, args...)...)}
	c.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "ORT_LIB=" + os.Getenv("ORT_LIB")}
	for k, v := range vars {
		c.Env = append(c.Env, k+"="+v)
	}
	c.Stdout = &c.out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// interrupt sends Ctrl-C; it returns the sentence of the only document that the command ends with.
func (c *command) interrupt(t *testing.T) string {
	t.Helper()
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatalf("%s ended by itself: %v\n%s", c, err, c.out.String())
	}
	var exit *exec.ExitError
	if err := c.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("%s: got %v, want exit code 1", c, err)
	}
	var doc struct{ Error, Code string }
	if err := json.Unmarshal(c.out.Bytes(), &doc); err != nil || doc.Code != "interrupted" {
		t.Errorf("%s printed %q (%v); want one document with the code interrupted", c, c.out.String(), err)
	}
	return doc.Error
}

func newestRun(t *testing.T, mlp string, vars map[string]string) string {
	t.Helper()
	var runs []struct {
		ID string `json:"flow_run_id"`
	}
	text, _ := runFormat(t, mlp, vars, "json", "runs list --model MACK --limit 1")
	if err := json.Unmarshal([]byte(text), &runs); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if len(runs) == 0 {
		return ""
	}
	return runs[0].ID
}

func countVersions(t *testing.T, client *tracker.Client) (n int) {
	t.Helper()
	for _, err := range client.SearchModelVersions(t.Context(), "name = 'runtimeclass'") {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// countProbes returns how many predictions without a trace, such as a benchmark's, the platform has answered.
func countProbes(t *testing.T, p *harness.Platform) (n int) {
	t.Helper()
	text := string(harness.Want(t, 200, "GET", p.Env["SERVING_URL"]+"/metrics", "", nil).Body)
	for _, m := range regexp.MustCompile(`(?m)^predict_probes_total(?:\{[^}]*\})? (\S+)$`).FindAllStringSubmatch(text, -1) {
		var v float64
		if _, err := fmt.Sscan(m[1], &v); err != nil {
			t.Fatal(err)
		}
		n += int(v)
	}
	return n
}
