//go:build e2e

package assistant_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// talk is one session of one client.
type talk struct {
	t       testing.TB
	url     string
	key     string
	session string
	scope   string        // namespace; sent with every message
	cluster string        // of several; sent with every message
	limit   time.Duration // of one turn; 0 is two minutes
	// everything received over the wire, to check what must never be there
	wire bytes.Buffer
}

// answer is the stream of one turn.
type answer struct {
	raw       []byte
	text      string
	tools     []string // lines of the calls
	results   []string
	phases    []string
	approvals []approval // chunks that request an approval, in order
	waiting   *approval  // repeated in the completion
	errors    []string   // codes of in-band errors
}

type approval struct {
	ID       string `json:"action_id"`
	Risk     string `json:"risk_level"`
	Summary  string `json:"human_summary"`
	Always   bool   `json:"always_confirm"`
	Digest   string `json:"digest"`
	Required bool   `json:"hitl_required"`
}

type chunk struct {
	Object  string `json:"object"`
	Session string `json:"session_id"`
	Choices []struct {
		Delta struct {
			Content string `json:"content"`
		} `json:"delta"`
		Finish *string `json:"finish_reason"`
		approval
	} `json:"choices"`
	Event *struct {
		Type, Phase, Message, Tool, Output, Code string
	} `json:"ki_event"`
}

// say sends one message and reads the whole stream.
func (k *talk) say(query string, more ...func(*turn)) answer {
	k.t.Helper()
	a, err := k.try(query, more...)
	if err != nil {
		k.t.Fatalf("%q in %s: %v", query, k.session, err)
	}
	return a
}

// turn holds the optional parts of a request beyond its message.
type turn struct {
	requestID   string
	autoApprove bool
	key         string
}

func withRequestID(id string) func(*turn) { return func(q *turn) { q.requestID = id } }
func autoApprove(q *turn)                 { q.autoApprove = true }
func withKey(key string) func(*turn)      { return func(q *turn) { q.key = key } }

func (k *talk) request(query string, q turn) (*http.Request, error) {
	if k.scope != "" {
		query = "[context: namespace=" + k.scope + "] " + query
	}
	body, err := json.Marshal(map[string]any{"messages": []map[string]string{{"role": "user", "content": query}}, "auto_approve": q.autoApprove})
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequest(http.MethodPost, k.url+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+q.key)
	r.Header.Set("X-Session-ID", k.session)
	if k.cluster != "" {
		r.Header.Set("X-Cluster", k.cluster)
	}
	if q.requestID != "" {
		r.Header.Set("X-Request-ID", q.requestID)
	}
	return r, nil
}

func (k *talk) try(query string, more ...func(*turn)) (answer, error) {
	q := turn{key: k.key}
	for _, m := range more {
		m(&q)
	}
	r, err := k.request(query, q)
	if err != nil {
		return answer{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(k.limit, 2*time.Minute))
	defer cancel()
	resp, err := http.DefaultClient.Do(r.WithContext(ctx))
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	k.wire.Write(raw)
	if err != nil {
		return answer{raw: raw}, err
	}
	if resp.StatusCode != http.StatusOK {
		return answer{raw: raw}, fmt.Errorf("status %d: %s", resp.StatusCode, raw)
	}
	return parseStream(raw)
}

// parseStream splits a stream and checks the stream's rules.
func parseStream(raw []byte) (answer, error) {
	a := answer{raw: raw}
	completions, done, first := 0, false, true
	sc := bufio.NewScanner(bytes.NewReader(raw))
	sc.Buffer(nil, 8<<20)
	for sc.Scan() {
		line := sc.Text()
		data, ok := strings.CutPrefix(line, "data: ")
		switch {
		case line == "" || strings.HasPrefix(line, ":") || strings.HasPrefix(line, "id: "):
			continue
		case !ok:
			return a, fmt.Errorf("a line that is no frame: %q", line)
		case done:
			return a, fmt.Errorf("a frame after the last: %q", line)
		case data == "[DONE]":
			done = true
			continue
		}
		var c chunk
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			return a, fmt.Errorf("%q: %w", data, err)
		}
		if first != (c.Object == "stream.start") {
			return a, fmt.Errorf("the handshake is not the first frame, or there are two: %q", data)
		}
		first = false
		if e := c.Event; e != nil {
			switch e.Type {
			case "tool_call":
				a.tools = append(a.tools, e.Message)
			case "tool_result":
				a.results = append(a.results, e.Output)
			case "status":
				a.phases = append(a.phases, e.Phase)
			case "error":
				a.errors = append(a.errors, e.Code)
			}
		}
		for _, choice := range c.Choices {
			a.text += choice.Delta.Content
			if choice.Finish != nil {
				completions++
				if choice.Required {
					p := choice.approval
					a.waiting = &p
				}
			} else if choice.Required {
				a.approvals = append(a.approvals, choice.approval)
			}
		}
	}
	if completions != 1 || !done || a.text == "" {
		return a, fmt.Errorf("%d completions, done %v, %d bytes of text in\n%s", completions, done, len(a.text), raw)
	}
	return a, sc.Err()
}

// get reads a document.
func (k *talk) get(path string) (int, []byte) {
	k.t.Helper()
	r, err := http.NewRequest(http.MethodGet, k.url+path, nil)
	if err != nil {
		k.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+k.key)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		k.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		k.t.Fatal(err)
	}
	k.wire.Write(raw)
	return resp.StatusCode, raw
}

// action is an action's document.
func (k *talk) action(id string) map[string]any {
	k.t.Helper()
	status, raw := k.get("/v1/sessions/" + k.session + "/actions/" + id)
	var doc map[string]any
	if err := json.Unmarshal(raw, &doc); err != nil || status != http.StatusOK {
		k.t.Fatalf("action %s: %d %s; want status == http.StatusOK", id, status, raw)
	}
	return doc
}
