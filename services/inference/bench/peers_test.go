package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/embedded/child"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
)

// peer is another model server. It serves the graph that the service serves, in one process and with its own batching.
type peer struct {
	name string
	// venv is the virtual environment that has it; scripts/venv.sh makes it.
	venv string
	// command starts it on a port. dir is a separate folder that holds model.onnx.
	command func(b *testing.B, dir string, port int) *exec.Cmd
	path    string
	// body is the request for a prediction of one row, whose columns are f00, f01, ….
	body func(row []float64) any
}

var peers = []peer{
	{name: "mlflow", venv: "venv", command: startMLflow, path: "/invocations", body: func(row []float64) any {
		columns := map[string]float64{}
		for i, v := range row {
			columns[fmt.Sprintf("f%02d", i)] = v
		}
		return map[string]any{"dataframe_records": []any{columns}}
	}},
	{name: "mlserver", venv: "venv-mlserver", command: startMLServer, path: "/v2/models/runtime/infer", body: func(row []float64) any {
		return map[string]any{"inputs": []any{map[string]any{"name": "rows", "datatype": "FP32", "shape": []int{1, len(row)}, "data": row}}}
	}},
	{name: "bentoml", venv: "venv-bentoml", command: startBentoML, path: "/predict", body: func(row []float64) any {
		return map[string]any{"rows": [][]float64{row}}
	}},
}

// BenchmarkPeers runs the service and each peer in turn, with the same graph and rows from 64 clients, and reports the
// median ratio of their rates and of their slowest hundredths. A peer that answers a row otherwise than the service fails
// the benchmark. The service checks a credential and keeps a snapshot of each prediction; the peers do neither.
func BenchmarkPeers(b *testing.B) {
	url := startService(b)
	bodies := predictBodies()
	for _, p := range peers {
		if _, err := os.Stat(filepath.Join(cache(b), p.venv)); err != nil {
			fmt.Fprintf(os.Stderr, "%s is left out: run scripts/venv.sh %s\n", p.name, strings.TrimPrefix(strings.TrimPrefix(p.venv, "venv"), "-")) // what b.Log says here is shown with -v alone
			continue
		}
		b.Run(p.name, func(b *testing.B) {
			addr, pid := p.start(b)
			theirs := p.bodies(b, bodies)
			b.Logf("memory (PSS): %.0f MiB in all its processes", memoryOf(b, pid))
			checkSameAnswers(b, url, bodies, addr+p.path, theirs)
			load := func(url string, bodies [][]byte, d time.Duration) Result {
				// Not wrk, which abandons its open requests at the end.
				r, err := byGo(context.Background(), url, bearer, bodies, clients, d)
				if err != nil || r.Failed > 0 {
					b.Fatalf("%s: %v, %d requests failed; want none", url, err, r.Failed)
				}
				return r
			}
			load(addr+p.path, theirs, time.Second)
			load(url, bodies, time.Second)
			var rates, tails, peerRates []float64
			for b.Loop() {
				for range rounds {
					other := load(addr+p.path, theirs, roundTime(b))
					own := load(url, bodies, roundTime(b))
					b.Logf("%s %6.0f/s p50 %v p99 %v   predict %6.0f/s p50 %v p99 %v", p.name, other.PerSecond, other.P50, other.P99, own.PerSecond, own.P50, own.P99)
					rates, tails = append(rates, own.PerSecond/other.PerSecond), append(tails, float64(other.P99)/float64(own.P99))
					peerRates = append(peerRates, other.PerSecond)
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(medianOf(peerRates), "peer/s")
			b.ReportMetric(medianOf(rates), "ratio")
			b.ReportMetric(medianOf(tails), "p99-ratio")
		})
	}
}

// start runs the peer until the benchmark's end, and answers its address and process once it is ready.
func (p peer) start(b *testing.B) (addr string, pid int) {
	b.Helper()
	dir := b.TempDir()
	write(b, filepath.Join(dir, "model.onnx"), fixturetest.Trees(b, "runtime", features, trees, depth)["model.onnx"])
	port := freePort(b)
	cmd := p.command(b, dir, port)
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = log.Close() })
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	// The service logs no request, so they do not either.
	cmd.Env = append(os.Environ(), "HOME="+dir, "PATH="+filepath.Dir(cmd.Path)+":"+os.Getenv("PATH"), "GRAPH="+filepath.Join(dir, "model.onnx"),
		"UVICORN_ACCESS_LOG=false", "BENTOML_DO_NOT_TRACK=True", "MLFLOW_DISABLE_TELEMETRY=true")
	// Told to end, a peer ends its own processes; killed, it would leave them behind.
	proc, err := child.Start(cmd, syscall.SIGTERM)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { stopFamily(proc) })
	addr = fmt.Sprintf("http://127.0.0.1:%d", port)
	probe, err := json.Marshal(p.body(make([]float64, features)))
	if err != nil {
		b.Fatal(err)
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	end := time.After(90 * time.Second)
	for {
		if err = sendOnce(context.Background(), asker, addr+p.path, bearer, probe); err == nil {
			return addr, proc.PID()
		}
		select {
		case <-tick.C:
		case <-proc.Done():
			b.Fatalf("%s ended: %v; it printed:\n%s", p.name, proc.Err(), tail(log.Name()))
		case <-end:
			b.Fatalf("%s is not ready after 90 s: %v; it printed:\n%s", p.name, err, tail(log.Name()))
		}
	}
}

// bodies converts the service's requests to those of the peer.
func (p peer) bodies(b *testing.B, requests [][]byte) (out [][]byte) {
	for _, raw := range requests {
		var request struct {
			Features map[string]float64 `json:"features"`
		}
		if err := json.Unmarshal(raw, &request); err != nil {
			b.Fatal(err)
		}
		row := make([]float64, features)
		for i := range row {
			row[i] = request.Features[fmt.Sprintf("f%02d", i)]
		}
		body, err := json.Marshal(p.body(row))
		if err != nil {
			b.Fatal(err)
		}
		out = append(out, body)
	}
	return out
}

func startMLflow(b *testing.B, dir string, port int) *exec.Cmd {
	model := filepath.Join(dir, "model")
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	save := exec.CommandContext(ctx, filepath.Join(cache(b), "venv/bin/python"), testdata(b, "mlflow/save.py"), filepath.Join(dir, "model.onnx"), model)
	save.Dir = dir
	if out, err := save.CombinedOutput(); err != nil {
		b.Fatalf("save the model for MLflow: %v\n%s", err, out)
	}
	return exec.Command(filepath.Join(cache(b), "venv/bin/python"), "-m", "mlflow", "models", "serve", "--model-uri", model, "--env-manager", "local", "--host", "127.0.0.1", "--port", strconv.Itoa(port))
}

// startMLServer batches as its documentation shows it; it does not by default. One process serves and predicts: the workers
// of version 1.7.1 do not start on today's uvloop.
func startMLServer(b *testing.B, dir string, port int) *exec.Cmd {
	copyFile(b, testdata(b, "mlserver/onnx_runtime.py"), filepath.Join(dir, "onnx_runtime.py"))
	writeJSON(b, filepath.Join(dir, "settings.json"), map[string]any{
		"host": "127.0.0.1", "http_port": port, "grpc_port": freePort(b), "metrics_port": freePort(b), "debug": false, "parallel_workers": 0,
	})
	writeJSON(b, filepath.Join(dir, "model-settings.json"), map[string]any{
		"name": "runtime", "implementation": "onnx_runtime.Onnx", "max_batch_size": 64, "max_batch_time": 0.005,
		"parameters": map[string]any{"uri": filepath.Join(dir, "model.onnx")},
	})
	return exec.Command(filepath.Join(cache(b), "venv-mlserver/bin/mlserver"), "start", dir)
}

func startBentoML(b *testing.B, dir string, port int) *exec.Cmd {
	copyFile(b, testdata(b, "bentoml/service.py"), filepath.Join(dir, "service.py"))
	return exec.Command(filepath.Join(cache(b), "venv-bentoml/bin/bentoml"), "serve", "service:Runtime", "--host", "127.0.0.1", "--port", strconv.Itoa(port))
}
