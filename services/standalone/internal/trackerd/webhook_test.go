package trackerd_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const testWait = 20 * time.Second

// told is a delivery as a receiver sees it.
type told struct {
	Entity, Action string
	Data           map[string]any
	signed         bool
}

// startReceiver takes deliveries; the first ones are answered with the statuses given.
func startReceiver(t *testing.T, secret string, statuses ...int) (url string, got chan told) {
	got = make(chan told, 100)
	var n atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var d told
		if err != nil || json.Unmarshal(body, &d) != nil {
			t.Errorf("body %s, %v; want json.Unmarshal(body, &d) == nil", body, err)
		}
		mac := hmac.New(sha256.New, []byte(secret))
		fmt.Fprintf(mac, "%s.%s.%s", r.Header.Get("X-MLflow-Delivery-Id"), r.Header.Get("X-MLflow-Timestamp"), body)
		d.signed = r.Header.Get("X-MLflow-Signature") == "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil))
		if i := int(n.Add(1)) - 1; i < len(statuses) {
			w.WriteHeader(statuses[i])
		}
		fmt.Fprint(w, "thanks")
		got <- d
	}))
	t.Cleanup(srv.Close)
	return srv.URL, got
}

func nextDelivery(t *testing.T, got chan told) told {
	t.Helper()
	select {
	case d := <-got:
		return d
	case <-time.After(testWait):
		t.Fatal("nothing was told")
		return told{}
	}
}

func TestWebhooks(t *testing.T) {
	t.Parallel()
	b := setupBench(t)
	url, got := startReceiver(t, "s3cret", 200, 503) // the first delivery after the test fails once
	events := []obj{{"entity": "MODEL_VERSION_ALIAS", "action": "CREATED"}, {"entity": "MODEL_VERSION_ALIAS", "action": "DELETED"}, {"entity": "MODEL_VERSION", "action": "CREATED"}}
	made := b.want(t, 200, "POST", api+"webhooks", obj{"name": "serving", "url": url, "events": events, "secret": "s3cret"})["webhook"].(obj)
	id := made["webhook_id"].(string)
	if a := b.do(t, "GET", api+"webhooks", nil); strings.Contains(string(a.body), "s3cret") || !strings.Contains(string(a.body), id) {
		t.Errorf(`list: %s; want !strings.Contains(string(a.body), "s3cret") && strings.Contains(string(a.body), id)`, a.body)
	}
	b.want(t, 400, "POST", api+"webhooks", obj{"name": "serving", "url": url, "events": events})

	result := b.want(t, 200, "POST", api+"webhooks/"+id+"/test", obj{"event": obj{"entity": "MODEL_VERSION_ALIAS", "action": "CREATED"}})["result"].(obj)
	if result["success"] != true || result["response_status"] != 200.0 || result["response_body"] != "thanks" {
		t.Errorf(`test: %v; want result["success"] == true && result["response_status"] == 200.0 && result["response_body"] == "thanks"`, result)
	}
	if d := nextDelivery(t, got); !d.signed || d.Entity != "model_version_alias" || d.Action != "created" || d.Data["alias"] != "example_alias" {
		t.Errorf(`test tells %+v; want d.signed && d.Entity == "model_version_alias" && d.Action == "created" && d.Data["alias"] == "example_alias"`, d)
	}

	run, _ := b.run(t)
	b.want(t, 200, "POST", api+"registered-models/create", obj{"name": "m"})
	b.want(t, 200, "POST", api+"model-versions/create", obj{"name": "m", "source": "runs:/" + run + "/model", "run_id": run})
	b.want(t, 200, "POST", api+"registered-models/alias", obj{"name": "m", "alias": "Production", "version": "1"})
	b.want(t, 200, "DELETE", api+"registered-models/alias", obj{"name": "m", "alias": "Production"})
	b.want(t, 200, "DELETE", api+"registered-models/alias", obj{"name": "m", "alias": "Production"}) // no change, no call
	for _, want := range []string{
		"model_version created map[description:<nil> name:m run_id:" + run + " source:runs:/" + run + "/model tags:map[] version:1]",
		"model_version created map[description:<nil> name:m run_id:" + run + " source:runs:/" + run + "/model tags:map[] version:1]", // again after the 503
		"model_version_alias created map[alias:Production name:m version:1]",
		"model_version_alias deleted map[alias:Production name:m]",
	} {
		if d := nextDelivery(t, got); !d.signed || fmt.Sprint(d.Entity, " ", d.Action, " ", d.Data) != want {
			t.Errorf("told %+v, want %s", d, want)
		}
	}

	b.want(t, 200, "PATCH", api+"webhooks/"+id, obj{"status": "DISABLED", "name": "renamed"})
	b.want(t, 200, "POST", api+"registered-models/alias", obj{"name": "m", "alias": "Canary", "version": "1"})
	// The calls for a disabled webhook would precede those for the enabled one.
	b.want(t, 200, "PATCH", api+"webhooks/"+id, obj{"events": []obj{{"entity": "REGISTERED_MODEL", "action": "CREATED"}}})
	b.want(t, 200, "PATCH", api+"webhooks/"+id, obj{"status": "ACTIVE"})
	b.want(t, 200, "POST", api+"registered-models/create", obj{"name": "second"})
	if d := nextDelivery(t, got); d.Entity != "registered_model" {
		t.Errorf(`told %+v; want d.Entity == "registered_model"`, d)
	}
	b.want(t, 200, "DELETE", api+"webhooks/"+id, nil)
	b.want(t, 404, "DELETE", api+"webhooks/"+id, nil)
}

func TestWebhookTestTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	b := setupBench(t)
	made := b.want(t, 200, "POST", api+"webhooks", obj{"name": "dead", "url": "http://127.0.0.1:1/x",
		"events": []obj{{"entity": "MODEL_VERSION", "action": "CREATED"}}})["webhook"].(obj)
	result := b.want(t, 200, "POST", api+"webhooks/"+made["webhook_id"].(string)+"/test", obj{})["result"].(obj)
	if result["success"] != false || !strings.Contains(result["error_message"].(string), "refused") {
		t.Errorf(`%v; want result["success"] == false && strings.Contains(result["error_message"].(string), "refused")`, result)
	}
}
