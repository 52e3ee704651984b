package inference_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/inference"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
)

// runtimeUUID is the model RUNTIME's on the bus.
const runtimeUUID = "7b0c5f4e-2f0a-4c8e-9a52-0d9b1f3f6a11"

// control answers a bridge's requests to the control plane, and counts the runs that it starts by key.
type control struct {
	*httptest.Server

	mu   sync.Mutex // guards runs
	runs map[string]string
}

func newControl(t *testing.T) *control {
	t.Helper()
	c := &control{runs: map[string]string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /models", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `[{"model_name": "RUNTIME", "datasets": ["Jobs"], "bus_uuid": %q}, {"model_name": "OTHER", "datasets": []}]`, strings.ToUpper(runtimeUUID))
	})
	mux.HandleFunc("POST /retrain", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !strings.Contains(string(body), `"model_name":"RUNTIME"`) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"type": "urn:platform:problem:model_not_found", "title": "No such model", "status": 404, "detail": "There is no such model.", "code": "model_not_found"}`)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		key := r.Header.Get("Idempotency-Key")
		if key == "" || c.runs[key] == "" {
			c.runs[fmt.Sprintf("%s#%d", key, len(c.runs))] = ""
			c.runs[key] = fmt.Sprintf("run-%d", len(c.runs))
		}
		_, _ = fmt.Fprintf(w, `{"flow_run_id": %q, "deployment": "training_flow/platform-dispatch", "status_url": "/retrain/%s", "parameters": {}}`, c.runs[key], c.runs[key])
	})
	c.Server = httptest.NewServer(mux)
	t.Cleanup(c.Close)
	return c
}

// bridge is a running bus bridge.
type bridge struct {
	t    *testing.T
	url  string
	stop func() // ends it, and waits
}

// startBridge runs a bridge; its readiness is waited for.
func startBridge(t *testing.T, natsURL, servingURL, controlURL string, settings ...string) *bridge {
	t.Helper()
	return startLinkedBridge(t, nil, natsURL, servingURL, controlURL, settings...)
}

// startLinkedBridge runs a bridge with a link to a service of this process; nil: it asks over HTTP.
func startLinkedBridge(t *testing.T, link func(*inference.BridgeConfig), natsURL, servingURL, controlURL string, settings ...string) *bridge {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := inference.LoadBridgeConfig(append([]string{
		"NATS_URL=" + natsURL, "SERVING_URL=" + servingURL, "CONTROL_PLANE_URL=" + controlURL,
	}, settings...))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Listener = ln
	if link != nil {
		link(&cfg)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- inference.RunBridge(ctx, cfg, slog.New(slog.DiscardHandler)) }()
	b := &bridge{t: t, url: "http://" + ln.Addr().String()}
	b.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the bridge ended with %v", err)
		}
	})
	t.Cleanup(b.stop)
	testenv.Eventually(t, 20*time.Second, func() error {
		if status, body := b.get("/readyz"); status != http.StatusOK {
			return fmt.Errorf("/readyz: %d %s", status, body)
		}
		return nil
	})
	return b
}

func (b *bridge) get(path string, header ...string) (int, string) {
	b.t.Helper()
	req, err := http.NewRequest(http.MethodGet, b.url+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(body)
}

// connect opens a producer's connection.
func connect(t *testing.T, url string) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// busReply is an answer with all members that a subject may have.
type busReply struct {
	JobID        any    `json:"job_id"`
	ModelName    string `json:"model_name"`
	ModelVersion string `json:"model_version"`
	Alias        string `json:"alias"`
	Prediction   any    `json:"prediction"`
	RunID        string `json:"run_id"`
	Timestamp    string `json:"timestamp"`
	FlowRunID    string `json:"flow_run_id"`
	StatusURL    string `json:"status_url"`
	Results      []any  `json:"results"`
	Error        *struct {
		Code   string `json:"code"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	} `json:"error"`
}

func decodeReply(t *testing.T, data []byte) (r busReply) {
	t.Helper()
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return r
}

func request(t *testing.T, nc *nats.Conn, subject, body string, header ...string) busReply {
	t.Helper()
	msg := &nats.Msg{Subject: subject, Data: []byte(body), Header: nats.Header{}}
	for i := 0; i+1 < len(header); i += 2 {
		msg.Header.Set(header[i], header[i+1])
	}
	answer, err := nc.RequestMsg(msg, 20*time.Second)
	if err != nil {
		t.Fatalf("%s: %v", subject, err)
	}
	return decodeReply(t, answer.Data)
}

// runtimeRegistry has RUNTIME in Production and, with another bias, in Staging.
func runtimeRegistry(t *testing.T) *fixturetest.Registry {
	reg := fixturetest.NewRegistry(t)
	reg.Alias("runtime", "Production", reg.Register("runtime", runtimeModel(t, 0), nil))
	reg.Alias("runtime", "Staging", reg.Register("runtime", runtimeModel(t, 1000), nil))
	return reg
}

const runtimeJob = `{"job_id": "j-1", "user_id": 7, "num_nodes": 2, "num_cpus": 64, "partition": "gpu", "walltime_secs": 3600, "timestamp": "2026-01-02T03:04:05Z", "features": ` + runtimeRow + `}`

func TestBusAnswersWhatHTTPAnswers(t *testing.T) {
	t.Parallel()
	i := start(t, runtimeRegistry(t))
	startBridge(t, i.NATS, i.URL, newControl(t).URL)
	nc := connect(t, i.NATS)

	got := request(t, nc, "bus.infer."+runtimeUUID, runtimeJob)
	if got.Error != nil || got.JobID != "j-1" || got.Prediction != 14.5 || got.ModelName != "RUNTIME" || got.ModelVersion != "1" ||
		got.Alias != "Production" || got.RunID != "run-runtime-1" {
		t.Errorf("got %+v, want the answer of POST /predict/runtime: 14.5 by version 1", got)
	}
	if _, err := time.Parse(time.RFC3339Nano, got.Timestamp); err != nil || !strings.HasSuffix(got.Timestamp, "Z") {
		t.Errorf("timestamp %q: %v, want UTC", got.Timestamp, err)
	}
	if got := request(t, nc, "bus.infer."+strings.ToUpper(runtimeUUID), strings.Replace(runtimeJob, `"features"`, `"alias": "staging", "features"`, 1)); got.Prediction != 1014.5 || got.Alias != "Staging" {
		t.Errorf("by alias: got %+v, want 1014.5 by Staging", got)
	}

	if got := request(t, nc, "bus.vector."+runtimeUUID, `{"values": [[4, 1, 1, 2, 3], [5, 1, 1, 2, 3]]}`); got.Error != nil || fmt.Sprint(got.Results) != "[14.5 16.5]" {
		t.Errorf("two rows: got %+v %+v, want 14.5 and 16.5", got.Results, got.Error)
	}

	results := make(chan *nats.Msg, 1)
	sub, err := nc.ChanSubscribe("bus.results", results)
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Unsubscribe() //nolint:errcheck // the connection ends with the test
	if err := nc.Publish("bus.jobs", []byte(strings.Replace(runtimeJob, `"job_id": "j-1"`, `"job_id": 12, "model_name": "RunTime"`, 1))); err != nil {
		t.Fatal(err)
	}
	select {
	case msg := <-results:
		if got := decodeReply(t, msg.Data); got.Error != nil || got.JobID != 12.0 || got.Prediction != 14.5 || got.ModelName != "RUNTIME" {
			t.Errorf("on bus.results: %s, want job 12 with 14.5", msg.Data)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("nothing came on bus.results")
	}
	wantSources(t, i.Database, map[string]int{"bus": 5})
}

// In one process with the service, a bridge needs no connection to it, and the service still checks the credential.
func TestBusInOneProcess(t *testing.T) {
	t.Parallel()
	const token = "5d0c1f7e9b3a4826a1f0"
	linked := inference.BridgeConfig{}
	i := launch(t, runtimeRegistry(t), func(cfg *inference.Config) {
		cfg.Credentials = `{"` + token + `": {"principal": "bridge", "tenant": "default", "scopes": ["predict"]}}`
		inference.LinkBridge(cfg, &linked)
	})
	i.Bearer = token
	i.Awaits("/readyz", http.StatusOK)
	const nowhere = "http://127.0.0.1:1"
	for given, want := range map[string]string{token: "", token + "x": "unauthenticated"} {
		b := startLinkedBridge(t, func(cfg *inference.BridgeConfig) { cfg.Link = linked.Link }, i.NATS, nowhere, newControl(t).URL, "SERVING_TOKEN="+given)
		nc := connect(t, i.NATS)
		got := request(t, nc, "bus.infer."+runtimeUUID, runtimeJob)
		switch {
		case want == "" && (got.Error != nil || got.Prediction != 14.5):
			t.Errorf("got %+v %+v; want 14.5", got, got.Error)
		case want != "" && (got.Error == nil || got.Prediction != nil):
			t.Errorf("with a wrong credential got %+v %+v; want %s", got, got.Error, want)
		}
		b.stop()
	}
}

// wantSources waits until the snapshots are of these sources.
func wantSources(t *testing.T, database string, want map[string]int) {
	t.Helper()
	db, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // only read from
	testenv.Eventually(t, 20*time.Second, func() error {
		got := map[string]int{}
		rows, err := db.Query(t.Context(), "select source, count(*) from inference.snapshots group by source")
		if err != nil {
			return err
		}
		var source string
		var n int
		_, err = pgx.ForEachRow(rows, []any{&source, &n}, func() error { got[source] = n; return nil })
		if fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("snapshots by source: got %v (%v), want %v", got, err, want)
		}
		return err
	})
}

func TestBusAnswersWhatIsWrong(t *testing.T) {
	t.Parallel()
	i := start(t, runtimeRegistry(t))
	b := startBridge(t, i.NATS, i.URL, newControl(t).URL)
	nc := connect(t, i.NATS)
	infer := "bus.infer." + runtimeUUID
	edit := func(old, with string) string { return strings.Replace(runtimeJob, old, with, 1) }
	for name, c := range map[string]struct {
		subject, body string
		status        int
		code, detail  string
	}{
		"no JSON":             {infer, `{"job_id": "j-1"`, 422, "validation_error", ""},
		"empty":               {infer, ``, 422, "validation_error", "empty"},
		"unknown member":      {infer, edit(`"user_id"`, `"user": 1, "user_id"`), 422, "validation_error", "body.user: unknown field"},
		"no user":             {infer, edit(`"user_id": 7, `, ``), 422, "validation_error", "body.user_id"},
		"no job":              {infer, edit(`"job_id": "j-1", `, ``), 422, "validation_error", "body.job_id"},
		"no nodes":            {infer, edit(`"num_nodes": 2`, `"num_nodes": 0`), 422, "validation_error", "body.num_nodes"},
		"a time of no time":   {infer, edit(`2026-01-02T03:04:05Z`, `yesterday`), 422, "validation_error", "body.timestamp"},
		"no question":         {infer, edit(`"features"`, `"partition2"`), 422, "validation_error", "unknown field"},
		"two questions":       {infer, edit(`"features"`, `"embedding": [1], "features"`), 422, "validation_error", "not both"},
		"an id of two lines":  {infer, edit(`"user_id": 7`, `"user_id": "a\nb"`), 422, "validation_error", "control characters"},
		"a long id":           {infer, edit(`"j-1"`, `"`+strings.Repeat("<", 300)+`"`), 422, "validation_error", "256 bytes"},
		"its own model":       {infer, edit(`"features"`, `"model_name": "OTHER", "features"`), 422, "validation_error", "the subject names the model"},
		"other columns":       {infer, edit(`"procs": 4, `, ``), 500, "feature_shape_mismatch", "procs"},
		"a text for a number": {infer, edit(`"procs": 4`, `"procs": "four"`), 422, "validation_error", "procs"},
		"alias of nothing":    {infer, edit(`"features"`, `"alias": "Canary", "features"`), 404, "model_not_loaded", "Canary"},
		"nobody's UUID":       {"bus.infer.00000000-0000-4000-8000-000000000000", runtimeJob, 404, "not_found", "mlp bus list"},
		"no UUID":             {"bus.infer.x", runtimeJob, 404, "not_found", `"x"`},
		"vector of nobody":    {"bus.vector.x", `{"values": [[1]]}`, 404, "not_found", `"x"`},
		"no vector":           {"bus.vector." + runtimeUUID, `{"values": []}`, 422, "validation_error", "1 to 1024 rows"},
		"a ragged vector":     {"bus.vector." + runtimeUUID, `{"values": [[1, 2], [1]]}`, 422, "validation_error", "row 1 has 1"},
		"a job of no model":   {"bus.jobs", runtimeJob, 422, "validation_error", "body.model_name"},
		"a job of nothing":    {"bus.jobs", edit(`"job_id"`, `"model_name": "Nothing", "job_id"`), 404, "model_not_loaded", "NOTHING"},
		"a run of nothing":    {"bus.retrain", `{"model_name": "Nothing", "dataset_name": "Jobs"}`, 404, "model_not_found", "no such model"},
	} {
		t.Run(name, func(t *testing.T) {
			got := request(t, nc, c.subject, c.body)
			if got.Error == nil || got.Error.Status != c.status || got.Error.Code != c.code || !strings.Contains(got.Error.Detail, c.detail) || got.Prediction != nil {
				t.Errorf("got %+v %+v, want %d %s with %q", got, got.Error, c.status, c.code, c.detail)
			}
		})
	}
	if got := request(t, nc, infer, edit(`"num_nodes": 2`, `"num_nodes": -1`)); got.JobID != "j-1" {
		t.Errorf("a refusal answers job %v, want that of the message", got.JobID)
	}
	if got := request(t, nc, "bus.retrain", `{"model_name": "RUNTIME", "dataset_name": "Jobs"}`, nats.MsgIdHdr, strings.Repeat("x", 300)); got.Error == nil || got.Error.Code != "validation_error" {
		t.Errorf("a message id of 300 bytes: %+v, want validation_error", got.Error)
	}
	// The bridge publishes nothing where its caller could not.
	events, err := nc.SubscribeSync("platform.>")
	if err != nil {
		t.Fatal(err)
	}
	for _, reply := range []string{"platform.default.approval.requested", "$JS.API.STREAM.PURGE.PLATFORM", "bus.jobs"} {
		if err := nc.PublishRequest(infer, reply, []byte(runtimeJob)); err != nil {
			t.Fatal(err)
		}
	}
	request(t, nc, infer, runtimeJob)
	if n, _, _ := events.Pending(); n != 0 {
		m, _ := events.NextMsg(time.Second)
		t.Errorf("%d messages came where only the platform publishes, the first on %s: %s; want none", n, m.Subject, m.Data)
	}
	// A message without a reply subject cannot be answered; the next one is.
	if err := nc.Publish(infer, []byte(`{`)); err != nil {
		t.Fatal(err)
	}
	if got := request(t, nc, infer, runtimeJob); got.Error != nil {
		t.Errorf("after a message without a reply subject: %+v", got.Error)
	}
	// The broker takes no message of 2 MB; a broker that did would pass it to a bridge that refuses it (TestParseRefusesLargeMessages).
	if _, err := nc.Request(infer, make([]byte, 2<<20), 20*time.Second); !errors.Is(err, nats.ErrMaxPayload) {
		t.Errorf("a message of 2 MB: got %v, want %v", err, nats.ErrMaxPayload)
	}
	if got := request(t, nc, infer, runtimeJob); got.Error != nil {
		t.Errorf("after a message of 2 MB: got %+v, want a prediction", got.Error)
	}
	if status, body := b.get("/metrics"); status != http.StatusOK || strings.Contains(body, "Nothing") || !strings.Contains(body, `bus_requests_total{kind="infer",status="feature_shape_mismatch"} 1`) ||
		!strings.Contains(body, "bus_connected 1") || !strings.Contains(body, `bus_seconds_bucket{kind="retrain"`) {
		t.Errorf("%d, metrics: want the refusals by code and no name from outside:\n%s", status, body)
	}
	status, body := b.get("/stats")
	var stats struct {
		PerModel map[string]struct {
			Inferences, Errors int
			P50Ms              *float64 `json:"p50_ms"`
		} `json:"per_model"`
	}
	if err := json.Unmarshal([]byte(body), &stats); err != nil || status != http.StatusOK || len(stats.PerModel) != 1 || stats.PerModel["RUNTIME"].P50Ms == nil || stats.PerModel["RUNTIME"].Errors < 10 {
		t.Errorf("/stats: %d %s (%v), want RUNTIME alone, with its errors and times", status, body, err)
	}
}

func TestBusStartsOneRunPerMessageID(t *testing.T) {
	t.Parallel()
	broker := testenv.NATS(t)
	startBridge(t, broker, "http://127.0.0.1:1", newControl(t).URL)
	nc := connect(t, broker)
	ask := func(header ...string) string {
		got := request(t, nc, "bus.retrain", `{"model_name": "RUNTIME", "dataset_name": "Jobs", "is_dummy": true}`, header...)
		if got.Error != nil || got.FlowRunID == "" || got.StatusURL != "/retrain/"+got.FlowRunID {
			t.Fatalf("got %+v %+v, want a run with its status URL", got, got.Error)
		}
		return got.FlowRunID
	}
	first := ask(nats.MsgIdHdr, "m-1")
	if again := ask(nats.MsgIdHdr, "m-1"); again != first {
		t.Errorf("the message sent again started %s, want %s", again, first)
	}
	if other := ask(nats.MsgIdHdr, "m-2"); other == first {
		t.Error("another message got the first one's run")
	}
	if one, two := ask(), ask(); one == two {
		t.Error("two messages without an id got one run")
	}
}

// A reply that no message can carry is a refusal, not silence.
func TestBusAnswersWhatIsTooLarge(t *testing.T) {
	t.Parallel()
	broker := testenv.NATS(t)
	label := strings.Repeat("<", 4000)
	serving := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"outputs": []any{map[string]any{"name": "label", "data": slices.Repeat([]string{label}, 100)}}})
	}))
	t.Cleanup(serving.Close)
	startBridge(t, broker, serving.URL, newControl(t).URL)
	got := request(t, connect(t, broker), "bus.vector."+runtimeUUID, `{"values": [`+strings.Repeat("[1],", 99)+`[1]]}`)
	if got.Error == nil || got.Error.Code != "bad_gateway" || !strings.Contains(got.Error.Detail, "fewer rows") {
		t.Errorf("got %+v, want bad_gateway that asks for fewer rows", got.Error)
	}
}

// An unavailable service is reported, and a flood does not leave the bridge full for good.
func TestBusIsNeverSilent(t *testing.T) {
	t.Parallel()
	broker := testenv.NATS(t)
	free := make(chan struct{})
	serving := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-free:
			_, _ = io.WriteString(w, `{"model_name": "RUNTIME", "model_version": "1", "run_id": "r", "prediction": 1}`)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(serving.Close)
	b := startBridge(t, broker, serving.URL, newControl(t).URL, "BUS_MAX_INFLIGHT=2")
	nc := connect(t, broker)
	inbox, answers := nats.NewInbox(), make(chan *nats.Msg, 8)
	if _, err := nc.ChanSubscribe(inbox, answers); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if err := nc.PublishRequest("bus.infer."+runtimeUUID, inbox, []byte(runtimeJob)); err != nil {
			t.Fatal(err)
		}
	}
	next := func() busReply {
		select {
		case msg := <-answers:
			return decodeReply(t, msg.Data)
		case <-time.After(20 * time.Second):
			t.Fatal("no answer")
			panic("unreachable")
		}
	}
	for range 3 {
		if got := next(); got.Error == nil || got.Error.Code != "overloaded" || got.Error.Status != 503 || got.JobID != "j-1" {
			t.Errorf("got %+v, want overloaded for job j-1", got)
		}
	}
	// Messages in progress when the bridge stops are answered; later ones go to another bridge.
	stopped := make(chan struct{})
	go func() { b.stop(); close(stopped) }()
	close(free)
	for range 2 {
		if got := next(); got.Error != nil || got.Prediction != 1.0 {
			t.Errorf("got %+v %+v, want the prediction", got, got.Error)
		}
	}
	select {
	case <-stopped:
	case <-time.After(30 * time.Second):
		t.Fatal("the bridge does not end")
	}
	serving.Close()
	startBridge(t, broker, serving.URL, newControl(t).URL)
	if got := request(t, nc, "bus.infer."+runtimeUUID, runtimeJob); got.Error == nil || got.Error.Status != 503 || got.Error.Code != "unavailable" {
		t.Errorf("without the inference service: %+v, want unavailable", got.Error)
	}
}

// One of two bridges is told to stop while both work: every request is answered, once.
func TestBusLosesNothingWhenABridgeEnds(t *testing.T) {
	t.Parallel()
	i := start(t, runtimeRegistry(t))
	c := newControl(t)
	first := startBridge(t, i.NATS, i.URL, c.URL)
	startBridge(t, i.NATS, i.URL, c.URL)
	nc := connect(t, i.NATS)
	const all, callers = 2000, 16
	var sent sync.WaitGroup
	halfway := make(chan struct{})
	failed := make(chan string, all)
	for caller := range callers {
		sent.Go(func() {
			for n := range all / callers {
				if caller == 0 && n == all/callers/2 {
					close(halfway)
				}
				id := fmt.Sprintf("%d-%d", caller, n)
				msg, err := nc.Request("bus.infer."+runtimeUUID, []byte(strings.Replace(runtimeJob, `"j-1"`, `"`+id+`"`, 1)), 20*time.Second)
				if err != nil || !strings.Contains(string(msg.Data), `"job_id":"`+id+`"`) || !strings.Contains(string(msg.Data), `"prediction":14.5`) {
					failed <- fmt.Sprintf("%s: %v", id, err)
				}
			}
		})
	}
	<-halfway
	first.stop()
	sent.Wait()
	close(failed)
	var lost []string
	for f := range failed {
		lost = append(lost, f)
	}
	if len(lost) > 0 {
		t.Errorf("%d of %d requests were not answered, such as %s", len(lost), all, lost[0])
	}
}

func TestBusHealthFollowsTheConnection(t *testing.T) {
	t.Parallel()
	broker := testenv.NewBroker(t)
	b := startBridge(t, broker.URL(), "http://127.0.0.1:1", newControl(t).URL, "BUS_MODE=reqres")
	health := func(status int, want string) {
		t.Helper()
		testenv.Eventually(t, 30*time.Second, func() error {
			if got, body := b.get("/health"); got != status || !strings.Contains(body, want) {
				return fmt.Errorf("/health: got %d %s, want %d with %s", got, body, status, want)
			}
			return nil
		})
	}
	health(http.StatusOK, `"status":"ok"`)
	health(http.StatusOK, `"models":1`)
	broker.Stop()
	health(http.StatusServiceUnavailable, `"connected":false`)
	if _, body := b.get("/stats"); !strings.Contains(body, `"bridge_error":"not connected to the bus`) {
		t.Errorf("/stats: %s, want the reason", body)
	}
	broker.Start()
	health(http.StatusOK, `"mode":"reqres"`)
	nc := connect(t, broker.URL())
	if got := request(t, nc, "bus.infer.x", runtimeJob); got.Error == nil || got.Error.Code != "not_found" {
		t.Errorf("after the broker's return: %+v, want an answer", got)
	}
	if _, err := nc.Request("bus.jobs", []byte("{}"), time.Second); err == nil {
		t.Error("BUS_MODE=reqres serves bus.jobs; want nobody to answer")
	}
}

func TestBusConfigIsChecked(t *testing.T) {
	t.Parallel()
	const secret = "a-long-enough-secret-of-no-dictionary-91"
	for setting, want := range map[string]string{
		"BUS_MODE=all":                       "BUS_MODE",
		"SERVING_URL=ftp://x":                "SERVING_URL",
		"CONTROL_PLANE_URL=x":                "CONTROL_PLANE_URL",
		"BUS_ADDR=0.0.0.0:18003":             "BUS_ADDR",
		"BUS_CREDENTIALS_JSON={":             "BUS_CREDENTIALS_JSON",
		"SERVING_TOKEN=changeme":             "SERVING_TOKEN",
		"BUS_MAX_INFLIGHT=0":                 "BUS_MAX_INFLIGHT",
		"BUS_TIMEOUT_MS=-1":                  "BUS_TIMEOUT_MS",
		"BUS_NATS_URL=nats://u:changeme@h:1": "BUS_NATS_URL",
	} {
		if _, err := inference.LoadBridgeConfig([]string{setting}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want a fault of %s", setting, err, want)
		}
	}
	broker := testenv.NATS(t)
	b := startBridge(t, broker, "http://127.0.0.1:1", newControl(t).URL,
		`BUS_CREDENTIALS_JSON={"`+secret+`": {"principal": "ann", "tenant": "default", "scopes": ["read"]}}`)
	for _, c := range []struct {
		path, bearer string
		want         int
	}{
		{"/health", "", 200}, {"/livez", "", 200}, {"/metrics", "", 200}, {"/openapi.json", "", 200},
		{"/stats", "", 401}, {"/stats", "Bearer " + secret + "x", 401}, {"/stats", "Bearer " + secret, 200},
	} {
		if got, body := b.get(c.path, "Authorization", c.bearer); got != c.want {
			t.Errorf("%s as %q: got %d %s, want %d", c.path, c.bearer, got, body, c.want)
		}
	}
}
