//go:build soak

package soak

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/mlp-platform/platform/e2e/harness"
)

// model is the sample that is trained and queried.
const model, dataset = "RuntimeClass", "IpscJobs"

// trainingLimit is how long a training may take on a machine under this load.
const trainingLimit = 10 * time.Minute

// load counts the requests to the platform and their outcomes.
type load struct {
	plane, planeToken     string
	serving, servingToken string
	assistant, key        string
	dashboard, session    string
	run                   string // makes names of this run unique
	commit, version       string // of the model
	prediction            string // a body

	mu     sync.Mutex // guards the fields below
	done   map[string]int
	failed map[string][]string
}

func newLoad(t *testing.T) *load {
	t.Helper()
	l := &load{
		plane: setting(t, "CONTROL_PLANE_URL"), planeToken: setting(t, "CONTROL_PLANE_TOKEN"),
		serving: setting(t, "SERVING_URL"), servingToken: setting(t, "SERVING_TOKEN"),
		assistant: setting(t, "ASSISTANT_URL"), key: setting(t, "ASSISTANT_READONLY_KEY"),
		dashboard: setting(t, "DASHBOARD_URL"),
		run:       time.Now().UTC().Format("0102T150405"), done: map[string]int{}, failed: map[string][]string{},
	}
	for _, what := range []string{"predictions", "notices", "rejections", "approvals", "trainings", "questions", "views", "streams", "samples"} {
		l.done[what] = 0
	}
	return l
}

// count records an action, and whether it failed.
func (l *load) count(what string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done[what]++
	if err != nil {
		l.failed[what] = append(l.failed[what], err.Error())
	}
}

// post sends a body to the control plane and decodes the answer.
func (l *load) post(path string, body, out any, headers ...string) error {
	answer, err := harness.TryCall(http.MethodPost, l.plane+path, l.planeToken, body, headers...)
	if err != nil {
		return err
	}
	if answer.Status != http.StatusOK {
		return fmt.Errorf("%d %.300s", answer.Status, answer.Body)
	}
	return json.Unmarshal(answer.Body, out)
}

// prepare signs in and trains a version, which all predictions request.
func (l *load) prepare(t *testing.T) {
	t.Helper()
	answer := harness.Want(t, http.StatusOK, http.MethodPost, l.dashboard+"/api/auth/login", "", map[string]string{"password": setting(t, "DASHBOARD_VIEWER_PASSWORD")})
	if l.session, _ = answer.JSON(t)["token"].(string); l.session == "" {
		t.Fatalf("login: %s; want a token", answer.Body)
	}
	var started struct {
		FlowRunID string `json:"flow_run_id"`
	}
	if err := l.post("/retrain", map[string]string{"model_name": model, "dataset_name": dataset}, &started, "Idempotency-Key", "soak-"+l.run); err != nil {
		t.Fatalf("retrain: %v", err)
	}
	r, err := l.awaitRun(t.Context(), started.FlowRunID)
	if err != nil {
		t.Fatalf("the first training: %v", err)
	}
	l.commit, l.version = r.Commit, fmt.Sprint(r.Version)
	text, err := os.ReadFile(filepath.Join(harness.Root(t), "deploy", "modelrepo", "models", "performance_prediction", model, "model.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var definition struct {
		Datasets []struct{ Features []struct{ Column string } }
	}
	if err := yaml.Unmarshal(text, &definition); err != nil {
		t.Fatal(err)
	}
	features := map[string]int{}
	for i, f := range definition.Datasets[0].Features {
		features[f.Column] = 1 + i
	}
	body, err := json.Marshal(map[string]any{"features": features, "version": l.version})
	if err != nil {
		t.Fatal(err)
	}
	l.prediction = string(body)
}

// training is a run of the orchestrator as the control plane shows it.
type training struct {
	State   string `json:"state_type"`
	Ended   bool   `json:"is_terminal"`
	Commit  string `json:"commit_sha"`
	Version any    `json:"model_version"`
}

// awaitRun waits for the end of a run, and returns an error unless it completed.
func (l *load) awaitRun(ctx context.Context, id string) (r training, err error) {
	ctx, cancel := context.WithTimeout(ctx, trainingLimit)
	defer cancel()
	for {
		answer, err := harness.TryCall(http.MethodGet, l.plane+"/retrain/"+id, l.planeToken, nil)
		if err != nil {
			return r, err
		}
		if answer.Status != http.StatusOK {
			return r, fmt.Errorf("run %s: %d %.300s", id, answer.Status, answer.Body)
		}
		if err := json.Unmarshal(answer.Body, &r); err != nil {
			return r, err
		}
		if r.Ended {
			if r.State != "COMPLETED" || r.Version == nil {
				return r, fmt.Errorf("run %s: %.300s", id, answer.Body)
			}
			return r, nil
		}
		if !pause(ctx, 2*time.Second) {
			return r, fmt.Errorf("run %s is %s: %w", id, r.State, ctx.Err())
		}
	}
}

// pause lets time pass between two requests; it returns false once the load is over.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// keepUp sends all of the load until ctx ends. No lane comes near a rate limit, so each refusal is an error.
func (l *load) keepUp(ctx context.Context) {
	var wg sync.WaitGroup
	repeat := func(clients int, gap time.Duration, do func(ctx context.Context, client, n int)) {
		for client := range clients {
			wg.Go(func() {
				for n := 0; pause(ctx, gap); n++ {
					do(ctx, client, n)
				}
			})
		}
	}
	repeat(4, 20*time.Millisecond, l.predict)
	repeat(1, 2*time.Second, l.noteAndReject)
	repeat(1, time.Minute, l.noteAndTrain)
	repeat(2, 5*time.Second, l.ask)
	repeat(2, 250*time.Millisecond, l.view)
	for range 10 {
		wg.Go(func() { l.readStream(ctx) })
	}
	wg.Wait()
}

func (l *load) predict(context.Context, int, int) {
	answer, err := harness.TryCall(http.MethodPost, l.serving+"/predict/"+model, l.servingToken, l.prediction)
	if err == nil && (answer.Status != http.StatusOK || !strings.Contains(string(answer.Body), `"prediction"`)) {
		err = fmt.Errorf("%d %.300s", answer.Status, answer.Body)
	}
	l.count("predictions", err)
}

// note sends a change of one model and returns the id of its record.
func (l *load) note(name, commit string) (string, error) {
	var noted struct{ Created, Existing []string }
	err := l.post("/api/changes", map[string]any{"model_ids": []string{name}, "commit_sha": commit, "commit_msg": "soak"}, &noted)
	ids := append(noted.Created, noted.Existing...)
	if err == nil && len(ids) != 1 {
		err = fmt.Errorf("records %v of one notice", ids)
	}
	l.count("notices", err)
	if err != nil {
		return "", err
	}
	return ids[0], nil
}

func (l *load) noteAndReject(_ context.Context, _, n int) {
	id, err := l.note(fmt.Sprintf("SOAK-%s-%05d", l.run, n), fmt.Sprintf("%040x", n+1))
	if err != nil {
		return
	}
	var decided struct{}
	l.count("rejections", l.post("/approvals/"+id+"/reject", map[string]string{"reason": "soak"}, &decided))
}

// noteAndTrain approves a change, and waits for its training; the next one begins after it.
func (l *load) noteAndTrain(ctx context.Context, _, _ int) {
	id, err := l.note(model, l.commit)
	if err != nil {
		return
	}
	var decided struct {
		FlowRunID string `json:"flow_run_id"`
	}
	err = l.post("/approvals/"+id+"/approve", map[string]any{}, &decided)
	l.count("approvals", err)
	if err != nil {
		return
	}
	_, err = l.awaitRun(ctx, decided.FlowRunID)
	if ctx.Err() != nil { // the soak ended before the training
		return
	}
	l.count("trainings", err)
}

// questions about the sample cluster.
var questions = []string{"what is wrong in shop", "how many pods are pending?", "which deployments are not ready?", "why does checkout restart?"}

func (l *load) ask(ctx context.Context, client, n int) {
	err := l.askQuestion(ctx, fmt.Sprintf("soak-%s-%d-%d", l.run, client, n/10), questions[n%len(questions)])
	if ctx.Err() != nil {
		return
	}
	l.count("questions", err)
}

func (l *load) askQuestion(ctx context.Context, session, question string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	body, err := json.Marshal(map[string]any{"messages": []map[string]string{{"role": "user", "content": question}}})
	if err != nil {
		return err
	}
	resp, err := send(ctx, http.MethodPost, l.assistant+"/v1/chat/completions", l.key, bytes.NewReader(body), "X-Session-ID", session)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode != http.StatusOK || !bytes.Contains(answer, []byte("data: [DONE]"))) {
		err = fmt.Errorf("%d, no end in %.300s", resp.StatusCode, answer)
	}
	return err
}

// send is a request without a timeout, for streams.
func send(ctx context.Context, method, url, token string, body io.Reader, headers ...string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return http.DefaultClient.Do(r)
}

var views = []string{"/api/v1/overview", "/api/v1/mlops/registry", "/api/v1/mlops/model/" + model, "/api/v1/facility/overview", "/api/v1/llmops/overview",
	"/api/v1/governance/overview", "/api/v1/finops/overview", "/api/v1/alerts", "/api/auth/me"}

func (l *load) view(_ context.Context, client, n int) {
	path := views[(n+client)%len(views)]
	answer, err := harness.TryCall(http.MethodGet, l.dashboard+path, l.session, nil)
	if err == nil && answer.Status != http.StatusOK {
		err = fmt.Errorf("%s: %d %.300s", path, answer.Status, answer.Body)
	}
	l.count("views", err)
}

// readStream reads events until the load is over; a stream that ends earlier is an error, and is reopened.
func (l *load) readStream(ctx context.Context) {
	for {
		err := l.readEvents(ctx)
		if ctx.Err() != nil {
			l.count("streams", nil)
			return
		}
		l.count("streams", err)
		if !pause(ctx, time.Second) {
			return
		}
	}
}

func (l *load) readEvents(ctx context.Context) error {
	resp, err := send(ctx, http.MethodGet, l.dashboard+"/api/v1/stream", l.session, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 4<<20)
	last := ""
	for lines.Scan() {
		if lines.Text() != "" {
			last = lines.Text()
		}
	}
	if lines.Err() != nil {
		return lines.Err()
	}
	return errors.New("the stream ended after " + last)
}
