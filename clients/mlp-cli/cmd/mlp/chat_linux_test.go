package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/cli/terminaltest"
)

const chatAction = "01a208a3-5ef5-78a8-ab82-699b94a5a255"

// recordedAssistant answers as the assistant was recorded to: a change to approve, its outcome, an answer without end, and
// text that a terminal would obey.
func recordedAssistant(t *testing.T) (url string, asked func() []string) {
	t.Helper()
	var mu sync.Mutex // guards questions
	var questions []string
	send := func(w http.ResponseWriter, chunk string) {
		fmt.Fprintf(w, "data: %s\n\n", chunk)
		_ = http.NewResponseController(w).Flush()
	}
	content := func(text, more string) string {
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Error(err)
		}
		return `{"choices":[{"index":0,"delta":{"content":` + string(quoted) + `},"finish_reason":null` + more + `}]}`
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Messages []struct{ Content string } }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || len(body.Messages) != 1 {
			t.Errorf("got %v and %v, want one message", body, err)
			return
		}
		question := body.Messages[0].Content
		mu.Lock()
		questions = append(questions, question)
		mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		send(w, `{"protocol_version":"1.0","object":"stream.start","session_id":"s"}`)
		switch {
		case strings.Contains(question, "scale"):
			send(w, `{"choices":[],"ki_event":{"type":"tool_call","tool":"list","message":"Running: kubectl get pods -n shop\u001b[2J","call_id":"call_1"}}`)
			send(w, `{"choices":[],"ki_event":{"type":"tool_result","tool":"list","output":"forbidden","call_id":"call_1","ok":false,"truncated":false}}`)
			send(w, content("This change waits for approval.\n", `,"hitl_required":true,"action_id":"`+chatAction+`","risk_level":"medium","human_summary":"kubectl scale","expires_at":"2026-11-23T14:40:54Z","digest":"sha256:0"`))
		case strings.HasPrefix(question, "approve "):
			send(w, content("Done: it was scaled.", ""))
		case question == "forever":
			send(w, content("first words", ""))
			<-r.Context().Done()
			return
		default:
			send(w, content("a log says \x1b]0;owned\x07\x1b[31m\u202etxt", ""))
		}
		send(w, "[DONE]")
	})
	mux.HandleFunc("GET /v1/sessions/{session}/actions/"+chatAction, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"diff":"--- live\n+++ result\n-  replicas: 2\n+  replicas: 3\u001b[8m\n"}`)
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string{}, questions...)
	}
}

// screen collects what a program shows at a terminal.
type screen struct {
	t      *testing.T
	person *os.File
	mu     sync.Mutex // guards shown
	shown  bytes.Buffer
	more   chan struct{}
}

func watchScreen(t *testing.T, person *os.File) *screen {
	s := &screen{t: t, person: person, more: make(chan struct{}, 1)}
	go func() {
		part := make([]byte, 4096)
		for {
			n, err := person.Read(part)
			s.mu.Lock()
			s.shown.Write(part[:n])
			s.mu.Unlock()
			select {
			case s.more <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	return s
}

// wait returns the output up to and including a text.
func (s *screen) wait(text string) string {
	s.t.Helper()
	limit := time.After(30 * time.Second)
	for {
		s.mu.Lock()
		before, after, ok := strings.Cut(s.shown.String(), text)
		if ok {
			s.shown.Reset()
			s.shown.WriteString(after)
		}
		got := before + text
		s.mu.Unlock()
		if ok {
			return got
		}
		select {
		case <-s.more:
		case <-limit:
			s.t.Fatalf("got %q, want %q", got, text)
		}
	}
}

func (s *screen) press(keys string) {
	s.t.Helper()
	if _, err := s.person.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// A person sees the reads and the whole change before the question, Ctrl-C ends an answer and not the conversation, and
// nothing that the assistant quotes acts on the terminal.
func TestChatAtATerminal(t *testing.T) {
	t.Parallel()
	url, asked := recordedAssistant(t)
	person, side := terminaltest.Open(t, 100)
	c := mlpProcess(t, "chat", "--session", "s1", "--namespace", "shop")
	c.Env = append(c.Env, "ASSISTANT_URL="+url)
	c.Stdin, c.Stdout, c.Stderr = side, side, side
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	s := watchScreen(t, person)
	s.wait("> ")
	s.press("scale cart\n")
	seen := s.wait("Approve this change? [y/N/later] ")
	for _, want := range []string{`· kubectl get pods -n shop\x1b[2J`, "    forbidden", "The whole change:", `replicas: 3\x1b[8m`} {
		if !strings.Contains(seen, want) {
			t.Errorf("got %q, want %q in it", seen, want)
		}
	}
	s.press("y\n")
	s.wait("Done: it was scaled.")
	s.wait("> ")
	s.press("forever\n")
	s.wait("first words")
	s.press("\x03")
	s.wait("error: interrupted; a change in progress runs to its end")
	s.wait("> ")
	s.press("what does the log say\n")
	s.wait(`a log says \x1b]0;owned\x07\x1b[31m\u202etxt`)
	s.wait("> ")
	s.press("scale it again\n")
	s.wait("Approve this change? [y/N/later] ")
	s.press("\x03")
	s.wait("not decided; until 2026-11-23T14:40:54Z:\r\nmlp chat --session s1 approve " + chatAction)
	s.wait("> ")
	s.press("\x03")
	s.wait("interrupted; continue later with: mlp chat --session s1")
	var exit *exec.ExitError
	if err := c.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("got %v, want exit 1", err)
	}
	want := []string{"[context: namespace=shop] scale cart", "approve " + chatAction, "forever", "what does the log say", "scale it again"}
	if got := asked(); strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got the questions %q, want %q", got, want)
	}
}

// A pipe decides nothing; --yes does.
func TestChatInAPipe(t *testing.T) {
	t.Parallel()
	url, asked := recordedAssistant(t)
	for _, line := range []string{"chat", "--json chat", "--yes chat"} {
		c := mlpProcess(t, strings.Fields(line)...)
		c.Env = append(c.Env, "ASSISTANT_URL="+url)
		c.Stdin = strings.NewReader("scale cart\n")
		out, err := c.Output()
		if err != nil {
			t.Fatalf("mlp %s: %v", line, err)
		}
		if line == "--json chat" {
			var doc struct {
				Pending struct{ Diff string }
				Tools   []struct{ Command string }
			}
			if err := json.Unmarshal(out, &doc); err != nil || !strings.Contains(doc.Pending.Diff, "replicas: 3") || len(doc.Tools) != 1 {
				t.Errorf("got %s (%v), want a document with the diff that waits and the read", out, err)
			}
		}
	}
	if got := strings.Join(asked(), "|"); got != "scale cart|scale cart|scale cart|approve "+chatAction {
		t.Errorf("got the questions %q, want one approval, of --yes", got)
	}
}
