package scriptedmodel

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// maxBody limits a request.
const maxBody = 32 << 20

// Server follows a script. It is an http.Handler.
type Server struct {
	script Script
	mux    *http.ServeMux
	// seen gets each request body, a line each; nil discards them.
	seen io.Writer

	mu         sync.Mutex
	bodies     [][]byte       // guarded by mu
	unexpected []string       // guarded by mu
	faults     map[[2]int]int // guarded by mu: how many of a step's faults were used
}

// New makes a server. The body of every request is written to seen as one line.
func New(s Script, seen io.Writer) (*Server, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	v := &Server{script: s, seen: seen, mux: http.NewServeMux(), faults: map[[2]int]int{}}
	v.mux.HandleFunc("POST /v1/chat/completions", v.complete)
	v.mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"scripted","object":"model","created":0,"owned_by":"script"}]}`)
	})
	return v, nil
}

// ServeHTTP is http.Handler.
func (v *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { v.mux.ServeHTTP(w, r) }

// Bodies are the bodies of all requests, in order.
func (v *Server) Bodies() [][]byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.bodies)
}

// Requests are all requests, in order.
func (v *Server) Requests() []Request {
	var all []Request
	for _, b := range v.Bodies() {
		var r Request
		if json.Unmarshal(b, &r) == nil {
			all = append(all, r)
		}
	}
	return all
}

// Unexpected are sentences on the requests that were not as their steps expected.
func (v *Server) Unexpected() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.unexpected)
}

func (v *Server) complete(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return
	}
	if err := v.note(body); err != nil {
		refuseRequest(w, http.StatusInternalServerError, err.Error())
		return
	}
	var q Request
	if err := json.Unmarshal(body, &q); err != nil {
		v.surprise(w, "the body is no request: "+err.Error())
		return
	}
	c, at, ok := v.script.place(q)
	if !ok {
		v.surprise(w, "the script has no conversation for this request")
		return
	}
	if !q.Stream {
		v.surprise(w, "the request is not for a stream")
		return
	}
	step := v.script.Conversations[c].Steps[at]
	if f, ok := v.fault(c, at, step); ok {
		writeFault(w, r, f)
		return
	}
	if why := step.Expect.fault(q); why != "" {
		v.surprise(w, fmt.Sprintf("conversation %d, step %d: %s", c+1, at+1, why))
		return
	}
	a := &answer{w: w, r: r, out: http.NewResponseController(w), step: step, at: at}
	a.send(q)
}

// note keeps a body, and writes it as one line.
func (v *Server) note(body []byte) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.bodies = append(v.bodies, body)
	if v.seen == nil {
		return nil
	}
	line := append(slices.DeleteFunc(slices.Clone(body), func(b byte) bool { return b == '\n' || b == '\r' }), '\n')
	_, err := v.seen.Write(line)
	return err
}

// fault takes the next fault of a step.
func (v *Server) fault(conversation, at int, s Step) (Fault, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	key := [2]int{conversation, at}
	n := v.faults[key]
	if n >= len(s.Faults) {
		return Fault{}, false
	}
	v.faults[key]++
	return s.Faults[n], true
}

func (v *Server) surprise(w http.ResponseWriter, why string) {
	v.mu.Lock()
	v.unexpected = append(v.unexpected, why)
	v.mu.Unlock()
	refuseRequest(w, http.StatusBadRequest, why)
}

func writeFault(w http.ResponseWriter, r *http.Request, f Fault) {
	switch {
	case f.Hang:
		<-r.Context().Done()
	case f.Event != "":
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: "+f.Event+"\n\n")
	default:
		for name, value := range f.Header {
			w.Header().Set(name, value)
		}
		if f.Body == "" {
			refuseRequest(w, f.Status, "scripted fault")
			return
		}
		w.WriteHeader(f.Status)
		_, _ = io.WriteString(w, f.Body)
	}
}

func refuseRequest(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	raw, _ := json.Marshal(map[string]any{"error": map[string]string{"message": message, "type": "scripted"}}) // plain strings always encode
	_, _ = w.Write(raw)
}

// answer is one streamed answer.
type answer struct {
	w    http.ResponseWriter
	r    *http.Request
	out  *http.ResponseController
	step Step
	at   int
	sent int // tokens
}

func (a *answer) send(q Request) {
	a.w.Header().Set("Content-Type", "text/event-stream")
	a.chunk(map[string]any{"role": "assistant", "content": ""}, nil)
	if !a.tokens(a.text(q)) {
		return
	}
	a.calls()
	finish := a.step.Finish
	switch {
	case finish != "":
	case len(a.step.Calls) > 0:
		finish = "tool_calls"
	default:
		finish = "stop"
	}
	a.chunk(map[string]any{}, finish)
	if u := a.step.Usage; u != nil && q.StreamOptions.IncludeUsage {
		a.event(map[string]any{"choices": []any{}, "usage": map[string]int64{
			"prompt_tokens": u.Prompt, "completion_tokens": u.Completion, "total_tokens": u.Prompt + u.Completion,
		}})
	}
	_, _ = io.WriteString(a.w, "data: [DONE]\n\n")
}

func (a *answer) text(q Request) []string {
	if !a.step.Echo {
		return a.step.Answer
	}
	last, _ := q.Last("tool")
	lines := strings.Split(last.Text(), "\n")
	if n := len(lines); n > 2 && strings.HasPrefix(lines[0], "<") && strings.HasPrefix(lines[n-1], "</") {
		lines = lines[1 : n-1]
	}
	return slices.Concat(a.step.Answer, strings.SplitAfter(strings.Join(lines, "\n"), " "))
}

// tokens sends the text; false: the stream ended early, as the script wants.
func (a *answer) tokens(text []string) bool {
	for range max(1, a.step.Repeat) {
		for _, t := range text {
			if a.r.Context().Err() != nil {
				return false
			}
			a.chunk(map[string]any{"content": t}, nil)
			a.sent++
			switch a.sent {
			case a.step.CutAfter:
				panic(http.ErrAbortHandler) // the connection ends without the stream's end
			case a.step.HangAfter:
				<-a.r.Context().Done()
				return false
			}
		}
	}
	return true
}

// calls sends each call as models do: its head first, its arguments in two pieces.
func (a *answer) calls() {
	n := 0
	for _, c := range a.step.Calls {
		for range max(1, c.Times) {
			if a.r.Context().Err() != nil {
				return
			}
			half := len(c.Arguments) / 2
			a.call(map[string]any{"index": n, "id": callID(a.at, n), "type": "function", "function": map[string]any{"name": c.Name, "arguments": ""}})
			for _, piece := range []string{c.Arguments[:half], c.Arguments[half:]} {
				a.call(map[string]any{"index": n, "function": map[string]any{"arguments": piece}})
			}
			n++
		}
	}
}

func (a *answer) call(delta map[string]any) {
	a.chunk(map[string]any{"tool_calls": []any{delta}}, nil)
}

func (a *answer) chunk(delta map[string]any, finish any) {
	a.event(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}})
}

func (a *answer) event(e map[string]any) {
	e["id"], e["object"], e["created"], e["model"] = "chatcmpl-scripted", "chat.completion.chunk", 0, "scripted"
	raw, _ := json.Marshal(e) // plain values always encode
	_, _ = a.w.Write(slices.Concat([]byte("data: "), raw, []byte("\n\n")))
	_ = a.out.Flush()
}
