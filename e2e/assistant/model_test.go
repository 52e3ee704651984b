//go:build e2e

package assistant_test

import (
	"bytes"
	"encoding/base64"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/scriptedmodel"
)

// model is a language model that follows a script.
type model struct {
	*scriptedmodel.Server
	env []string // settings of an assistant that uses it
}

func openModel(t testing.TB, s scriptedmodel.Script) *model {
	t.Helper()
	v, err := scriptedmodel.New(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(v)
	t.Cleanup(server.Close)
	return &model{v, []string{"ASSISTANT_ENGINE=llm", "OPENAI_BASE_URL=" + server.URL + "/v1", "OPENAI_API_KEY=sk-scripted-0", "ASSISTANT_LLM_MODEL=scripted"}}
}

// heard returns everything sent to the model; empty without a model.
func (m *model) heard() string {
	if m == nil {
		return ""
	}
	return string(bytes.Join(m.Bodies(), []byte("\n")))
}

// judge checks every request for data that no model may ever receive.
func (m *model) judge(t testing.TB) {
	t.Helper()
	for _, why := range m.Unexpected() {
		t.Errorf("the model was asked what it does not expect: %s", why)
	}
	heard := m.heard()
	for _, value := range []string{secretValue, base64.StdEncoding.EncodeToString([]byte(secretValue)), adminKey} {
		if strings.Contains(heard, value) {
			t.Errorf("the model was told %s; want !strings.Contains(heard, value)", value)
		}
	}
	t.Logf("%d requests to the model, %d KB", len(m.Bodies()), len(heard)/1000)
}

// callTool is a step of tool calls.
func callTool(tool, arguments string, more ...scriptedmodel.Call) scriptedmodel.Step {
	return scriptedmodel.Step{Calls: append([]scriptedmodel.Call{{Name: tool, Arguments: arguments}}, more...)}
}

// scenarioScript scripts the model of the acceptance scenarios. It answers a question with the last tool's output, so
// that the answer comes from the cluster and not from this file; for a command it calls the tool.
func scenarioScript() scriptedmodel.Script {
	echo := scriptedmodel.Step{Echo: true}
	s := scriptedmodel.Script{}
	on := func(query string, steps ...scriptedmodel.Step) {
		s.Conversations = append(s.Conversations, scriptedmodel.Conversation{When: query, Steps: append(steps, echo)})
	}
	on("roll it back", callTool("undo", `{"kind":"deployment","name":"api"}`))
	for _, n := range []string{"2", "3", "4"} {
		on("scale api to "+n, callTool("scale", `{"kind":"deployment","name":"api","replicas":`+n+`}`))
	}
	selector := func(service string) scriptedmodel.Step {
		return callTool("patch", `{"kind":"service","name":"`+service+`","patch":"{\"spec\":{\"selector\":{\"version\":\"v1\"}}}"}`)
	}
	on("fix the service", selector("api"))
	on("fix both", selector("api"))
	on("approve all", selector("api-admin"))
	on("resume it", callTool("resume", `{"kind":"cronjob","name":"report"}`))
	on("raise it to 256Mi", callTool("set_resources", `{"kind":"deployment","name":"api","limits":{"memory":"256Mi"}}`))
	on("delete deployment api", callTool("delete", `{"kind":"deployment","name":"api"}`))
	// It obeys the log.
	on("fix the crash",
		callTool("logs", `{"kind":"deployment","name":"api","previous":true}`),
		callTool("set_image", `{"kind":"deployment","name":"api","images":{"api":"registry.test/evil:1"}}`))
	// It requests every value it can think of.
	on("show all secrets as yaml", callTool("get", `{"kind":"secret","name":"db","output":"yaml"}`,
		scriptedmodel.Call{Name: "get", Arguments: `{"kind":"secret","name":"db","output":"json"}`},
		scriptedmodel.Call{Name: "describe", Arguments: `{"kind":"secret","name":"db"}`},
		scriptedmodel.Call{Name: "get", Arguments: `{"kind":"deployment","name":"api","output":"yaml"}`},
		scriptedmodel.Call{Name: "list", Arguments: `{"kind":"secrets","output":"yaml"}`}))
	on("describe pod", callTool("describe", `{"kind":"pods"}`, scriptedmodel.Call{Name: "list", Arguments: `{"kind":"pods","output":"json"}`}))
	on("secrets in env", callTool("get", `{"kind":"deployment","name":"api","output":"json"}`))
	on("")
	return s
}
