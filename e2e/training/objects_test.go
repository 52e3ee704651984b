//go:build e2e && full

// Package training tests the trainer with external systems: an object store, and the libraries of Python.
package training

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

const repository = `
name: Temperature
task_type: performance_prediction
type: regression
estimator: {kind: ridge}
datasets:
  - name: Readings
    backend: object_store
    target: {column: y}
    features: [{column: x, kind: number}]
split: {kind: files, fractions: [0.34, 0.33, 0.33]}
`

const dataset = `
name: Readings
format: csv
files: ["2026/*.csv"]
backends: {object_store: {bucket: plant, prefix: readings/}}
columns:
  x: {type: number, available: submit}
  y: {type: number, available: end}
`

// A data set of the backend object_store is read from a real S3 server: the objects of its prefix and pattern, in the
// order of their names; a wrong key, a missing bucket and a prefix without objects are refused.
func TestObjectStore(t *testing.T) {
	const access, secret = "trainer-reads", "a-secret-of-the-test-store"
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write("repo/models/performance_prediction/Temperature/model.yaml", repository)
	write("repo/datasets/Readings.yaml", dataset)
	for month := range 3 {
		var rows strings.Builder
		for i := range 40 {
			fmt.Fprintf(&rows, "%d,%d\n", month*100+i, 2*(month*100+i))
		}
		write(fmt.Sprintf("store/plant/readings/2026/%02d.csv", month+1), "x,y\n"+rows.String())
	}
	write("store/plant/readings/2025/12.csv", "x,y\n9,9\n")
	write("store/plant/other.csv", "nothing\n")
	endpoint := startStore(t, filepath.Join(dir, "store"), access, secret)

	heldout := func(key string) (string, error) {
		cmd := exec.Command(harness.Bin(t, "trainer"), "heldout", "--model", "Temperature", "--repo", filepath.Join(dir, "repo"), "--n", "0")
		cmd.Env = append(os.Environ(), "S3_ENDPOINT="+endpoint, "S3_REGION=us-east-1", "S3_ACCESS_KEY="+access, "S3_SECRET_KEY="+key)
		var out, errOut bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errOut
		if err := cmd.Run(); err != nil {
			return "", fmt.Errorf("%w: %s", err, errOut.String())
		}
		return out.String(), nil
	}
	text, err := heldout(secret)
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Actual float64 `json:"actual"`
	}
	if err := json.Unmarshal([]byte(text), &rows); err != nil || len(rows) != 40 || rows[0].Actual != 400 {
		t.Errorf("%d rows, %v, %.200s; want the 40 of the last month", len(rows), err, text)
	}
	if _, err := heldout("another-secret-than-the-store"); err == nil || !strings.Contains(err.Error(), "data set Readings: object store, bucket plant: ") {
		t.Errorf("%v, want a refusal of the key", err)
	}
	for want, c := range map[string][2]string{
		"does not exist":           {"bucket: plant", "bucket: nowhere"},
		`no object below "other/"`: {"prefix: readings/", "prefix: other/"},
	} {
		write("repo/datasets/Readings.yaml", strings.Replace(dataset, c[0], c[1], 1))
		if _, err := heldout(secret); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// startStore runs versitygw on the folder and waits until it answers.
func startStore(t *testing.T, dir, access, secret string) string {
	t.Helper()
	out, err := exec.Command(filepath.Join(harness.Root(t), "scripts", "tool.sh"), "versitygw").Output()
	if err != nil {
		t.Fatal(err)
	}
	address := harness.FreePorts(t, 1)[0]
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, strings.TrimSpace(string(out)), "--port", address, "--access", access, "--secret", secret, "posix", "--nometa", dir)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("versitygw: %s", log.String())
		}
	})
	endpoint := "http://" + address
	harness.Eventually(t, 60*time.Second, func() error {
		resp, err := http.Get(endpoint + "/plant")
		if err != nil {
			return err
		}
		return resp.Body.Close()
	})
	return endpoint
}
