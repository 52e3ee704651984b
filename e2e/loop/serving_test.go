//go:build e2e

package loop

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/mlp-platform/platform/e2e/harness"
)

// Acceptance row 19: of 1,000 keys, 90 and 10 % get Production and Canary, each consistently; weights that do not sum
// to 100 are refused.
func TestRow19_SplitIsSticky(t *testing.T) {
	p := sharedPlatform(t)
	url, token := p.Env["SERVING_URL"], p.Env["SERVING_TOKEN"]
	body, err := os.ReadFile(heldOutBodies(t, p, "RuntimeClass")[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the platform is shared
		harness.Want(t, 200, "DELETE", p.Tracker()+"/api/2.0/mlflow/registered-models/alias", "", map[string]string{"name": "runtimeclass", "alias": "Canary"})
		harness.Want(t, 200, "POST", url+"/reload/runtimeclass", token, nil)
	})
	harness.Want(t, 200, "POST", p.Tracker()+"/api/2.0/mlflow/registered-models/alias", "", map[string]any{"name": "runtimeclass", "alias": "Canary", "version": productionVersion(t, p, "runtimeclass")})
	harness.Want(t, 200, "POST", url+"/reload/runtimeclass", token, nil)
	refused := harness.Want(t, 422, "POST", url+"/traffic-rules/runtimeclass", token, map[string]int{"Production": 90, "Canary": 9})
	if refused.JSON(t)["code"] != "validation_error" {
		t.Errorf("weights of 99: %s, want validation_error", refused.Body)
	}
	harness.Want(t, 200, "POST", url+"/traffic-rules/runtimeclass", token, map[string]int{"Production": 90, "Canary": 10})
	defer harness.Want(t, 204, "DELETE", url+"/traffic-rules/runtimeclass", token, nil)
	const keys = 1000
	first := map[string]string{}
	canary := 0
	for round := range 2 {
		for k := range keys {
			key := fmt.Sprintf("user-%d", k)
			alias := fmt.Sprint(harness.Want(t, 200, "POST", url+"/predict/runtimeclass", token, string(body), "X-Routing-Key", key).JSON(t)["alias"])
			switch {
			case round == 0:
				first[key] = alias
				if alias == "Canary" {
					canary++
				}
			case first[key] != alias:
				t.Errorf("%s got %s and then %s, want the same", key, first[key], alias)
			}
		}
	}
	t.Logf("%d of %d keys got Canary", canary, keys)
	// Three standard deviations of a binomial distribution are 2.85 %.
	if share := float64(canary) / keys; math.Abs(share-0.1) > 0.03 {
		t.Errorf("%.3f of the keys got Canary, want 0.10 ± 0.03", share)
	}
}

// Acceptance row 21: requests beyond a model's limit are told to retry; admitted ones are answered. Bodies that are
// held back keep as many requests admitted as the test needs.
func TestRow21_FloodIsShed(t *testing.T) {
	p := sharedPlatform(t)
	url, token := p.Env["SERVING_URL"], p.Env["SERVING_TOKEN"]
	body, err := os.ReadFile(heldOutBodies(t, p, "RuntimeClass")[0])
	if err != nil {
		t.Fatal(err)
	}
	const bound, more = 256 + 512, 32 // MAX_INFLIGHT and QUEUE_MAX; and the excess
	conns := make([]net.Conn, 0, bound+more)
	defer func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}()
	for range bound + more {
		c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
		if _, err := fmt.Fprintf(c, "POST /predict/runtimeclass HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", token, len(body)); err != nil {
			t.Fatal(err)
		}
	}
	harness.Eventually(t, 25*time.Second, func() error {
		a := harness.Call(t, "POST", url+"/predict/runtimeclass", token, string(body))
		if a.Status != http.StatusServiceUnavailable || a.JSON(t)["code"] != "overloaded" || a.Header.Get("Retry-After") == "" {
			return fmt.Errorf("%d %s, want 503 overloaded with Retry-After", a.Status, a.Body)
		}
		return nil
	})
	answered := 0
	for _, c := range conns { // a shed one may already be closed
		_, _ = c.Write(body)
	}
	for _, c := range conns {
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			continue // shed, and its answer was cut off by the unread body
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		switch resp.StatusCode {
		case http.StatusOK:
			answered++
		case http.StatusServiceUnavailable:
		default:
			t.Errorf("%s, want 200, or 503 for what is too much", resp.Status)
		}
	}
	if answered < bound {
		t.Errorf("%d of the %d requests that were taken were answered", answered, bound)
	}
	harness.Eventually(t, 20*time.Second, func() error {
		if a := harness.Call(t, "POST", url+"/predict/runtimeclass", token, string(body)); a.Status != http.StatusOK {
			return fmt.Errorf("%d %s, want 200 after the flood", a.Status, a.Body)
		}
		return nil
	})
}

// busUUID is the UUID of a model on the bus.
func busUUID(t *testing.T, p *harness.Platform, model string) string {
	t.Helper()
	for _, m := range harness.Want(t, 200, "GET", p.Env["CONTROL_PLANE_URL"]+"/models", p.Env["CONTROL_PLANE_TOKEN"], nil).List(t) {
		if m["model_name"] == model && m["bus_uuid"] != nil {
			return fmt.Sprint(m["bus_uuid"])
		}
	}
	t.Fatalf("%s has no bus_uuid", model)
	return ""
}

// busJob is a held-out job of RUNTIMEREGRESSOR as a message, and what HTTP predicts for it.
func busJob(t *testing.T, p *harness.Platform) (features string, prediction float64) {
	t.Helper()
	raw, err := os.ReadFile(heldOutBodies(t, p, "RuntimeRegressor")[0])
	if err != nil {
		t.Fatal(err)
	}
	var body struct{ Features json.RawMessage }
	if err := json.Unmarshal(raw, &body); err != nil {
		t.Fatal(err)
	}
	return string(body.Features), harness.Want(t, 200, "POST", p.Env["SERVING_URL"]+"/predict/RUNTIMEREGRESSOR", p.Env["SERVING_TOKEN"], string(raw)).JSON(t)["prediction"].(float64)
}

type busAnswer struct {
	JobID      string `json:"job_id"`
	Prediction float64
	Error      *struct {
		Code   string
		Status int
	}
}

// Acceptance row 24, the bus: the same number as over HTTP; a malformed message gets an answer that reports it.
func TestRow24_BusAnswersAsHTTP(t *testing.T) {
	p := sharedPlatform(t)
	uuid := busUUID(t, p, "RUNTIMEREGRESSOR")
	features, want := busJob(t, p)
	nc, err := nats.Connect(p.Env["BUS_NATS_URL"])
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	ask := func(subject, message string) (a busAnswer) {
		t.Helper()
		msg, err := nc.Request(subject, []byte(message), 30*time.Second)
		if err != nil {
			t.Fatalf("%s: %v, want an answer", subject, err)
		}
		if err := json.Unmarshal(msg.Data, &a); err != nil {
			t.Fatalf("%s: %v", msg.Data, err)
		}
		return a
	}
	if a := ask("bus.infer."+uuid, `{"job_id": "row-24", "user_id": 7, "num_nodes": 2, "features": `+features+`}`); a.Error != nil || a.Prediction != want || a.JobID != "row-24" {
		t.Errorf("over the bus %+v, want %v as over HTTP", a, want)
	}
	for subject, c := range map[string]struct {
		message, code string
		status        int
	}{
		"bus.infer." + uuid: {`{"job_id": `, "validation_error", 422},
		"bus.infer.00000000-0000-4000-8000-000000000000": {`{"job_id": "x", "user_id": 7, "num_nodes": 2, "features": {}}`, "not_found", 404},
	} {
		if a := ask(subject, c.message); a.Error == nil || a.Error.Code != c.code || a.Error.Status != c.status {
			t.Errorf("%s with %s: %+v, want %s %d", subject, c.message, a.Error, c.code, c.status)
		}
	}
}

// Two bridges share 10,000 requests and one is killed halfway: its requests are answered when they are sent again, so
// every request gets its answer.
func TestBusLosesNothingWhenABridgeIsKilled(t *testing.T) {
	p := sharedPlatform(t)
	uuid := busUUID(t, p, "RUNTIMEREGRESSOR")
	features, want := busJob(t, p)
	nc, err := nats.Connect(p.Env["BUS_NATS_URL"])
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	addr := harness.FreePorts(t, 1)[0]
	second := exec.Command(harness.Bin(t, "bus-bridge"))
	second.Env = append(os.Environ(), "BUS_ADDR="+addr, "BUS_MODE=reqres",
		"BUS_NATS_URL=nats://bus-bridge:"+p.Secret(t, "bus_bridge_password")+"@"+nc.ConnectedAddr(),
		"SERVING_URL="+p.Env["SERVING_URL"], "SERVING_TOKEN="+p.Secret(t, "bus_serving_token"),
		"CONTROL_PLANE_URL="+p.Env["CONTROL_PLANE_URL"], "CONTROL_PLANE_TOKEN="+p.Secret(t, "bus_control_plane_token"))
	second.Stderr = os.Stderr
	if err := second.Start(); err != nil {
		t.Fatal(err)
	}
	kill := sync.OnceFunc(func() {
		_ = second.Process.Kill()
		_ = second.Wait()
	})
	defer kill()
	harness.Eventually(t, 30*time.Second, func() error {
		resp, err := http.Get("http://" + addr + "/readyz")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("second bridge: %s", resp.Status)
		}
		return nil
	})
	const all, callers, attempts = 10_000, 16, 20
	var done, again atomic.Int64
	var wg sync.WaitGroup
	halfway := make(chan struct{})
	for caller := range callers {
		wg.Go(func() {
			for n := caller; n < all; n += callers {
				id := fmt.Sprintf("job-%d", n)
				message := fmt.Appendf(nil, `{"job_id": %q, "user_id": 7, "num_nodes": 2, "features": %s}`, id, features)
				var a busAnswer
				var err error
				for attempt := range attempts {
					if attempt > 0 {
						again.Add(1)
					}
					var msg *nats.Msg
					if msg, err = nc.Request("bus.infer."+uuid, message, 5*time.Second); err == nil {
						err = json.Unmarshal(msg.Data, &a)
						break
					}
				}
				if err != nil || a.Error != nil || a.JobID != id || a.Prediction != want {
					t.Errorf("%s: %v %+v, want %v", id, err, a, want)
				}
				if done.Add(1) == all/2 {
					close(halfway)
				}
			}
		})
	}
	<-halfway
	served := harness.Call(t, "GET", "http://"+addr+"/stats", "", nil).JSON(t)["inferences_total"]
	kill()
	wg.Wait()
	t.Logf("the second bridge had answered %v when it was killed; %d requests were sent again", served, again.Load())
	if n, _ := served.(float64); n < 100 {
		t.Errorf("the second bridge had answered %v of %d, want a share of them", served, all/2)
	}
}
