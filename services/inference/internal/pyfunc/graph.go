package pyfunc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mlp-platform/platform/libs/onnx/runtime"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/inference/internal/model"
	"github.com/mlp-platform/platform/services/inference/internal/schema"
)

// graph is a scoring server as package model sees it: an input per column, and one answer a row.
type graph struct {
	server server
	client *http.Client
	limit  time.Duration
	inputs []runtime.Info
	head   []byte // of each request, up to the rows
	flat   bool   // the only input is a tensor without a name, whose values are columns of the table
	answer runtime.Info
	fault  atomic.Pointer[string] // of the last run that the server did not answer; nil once it answers
}

func newGraph(s *schema.Schema, limit time.Duration, sessions int) *graph {
	g := &graph{client: newClient(sessions), limit: limit, flat: s.Tensors}
	head := []byte(`{"dataframe_split":{"columns":[`)
	for i, c := range s.Columns {
		info := runtime.Info{Name: c.Name, Type: runtime.Double, Dims: []int64{-1, int64(max(c.Length, 1))}}
		switch c.Kind {
		case schema.Integer:
			info.Type = runtime.Int64
		case schema.Boolean:
			info.Type = runtime.Bool
		case schema.Category:
			info.Type = runtime.String
		}
		g.inputs = append(g.inputs, info)
		if i > 0 {
			head = append(head, ',')
		}
		if g.flat {
			for j := range info.Dims[1] {
				if j > 0 {
					head = append(head, ',')
				}
				head = strconv.AppendInt(head, j, 10)
			}
			continue
		}
		head = appendText(head, c.Name)
	}
	g.head = append(head, `],"data":[`...)
	return g
}

func (g *graph) setAnswer(a schema.Answer) { g.answer = answers[a] }

// Inputs implements model.Graph.
func (g *graph) Inputs() []runtime.Info { return g.inputs }

// Outputs implements model.Graph.
func (g *graph) Outputs() []runtime.Info { return []runtime.Info{g.answer} }

// KnownTexts implements model.Graph; a server lists none.
func (g *graph) KnownTexts(string) []string { return nil }

// ReadsSize implements model.Graph.
func (g *graph) ReadsSize() bool { return false }

// Classes implements model.Graph: a scoring server answers no probabilities.
func (g *graph) Classes() []string { return nil }

// Close implements model.Graph.
func (g *graph) Close() error {
	err := g.server.close()
	g.client.CloseIdleConnections()
	return err
}

// Fault is why the server does not answer.
func (g *graph) Fault() string {
	if _, err := g.server.base(); err != nil {
		return reasonPrefix + err.Error()
	}
	if f := g.fault.Load(); f != nil {
		return reasonPrefix + *f
	}
	return ""
}

// reasonPrefix is the code of such faults in lists.
const reasonPrefix = "scoring_unavailable: "

// Run implements model.Graph: one request for all rows.
func (g *graph) Run(in []runtime.Tensor) ([]runtime.Tensor, error) {
	rows := int(in[0].Dims[0])
	raw, err := g.invoke(appendRows(bytes.Clone(g.head), in, rows, g.flat), rows)
	if err != nil {
		return nil, err
	}
	out, err := readAnswers(raw, rows, g.answer)
	if err != nil {
		return nil, err
	}
	return []runtime.Tensor{out}, nil
}

// Limits of an answer, in bytes: of each, and of each row in it. A reason that a server gives is shortened.
const (
	answerBase   = 64 << 10
	answerPerRow = 4 << 10
)

// invoke posts the rows and returns the body of the server's answer.
func (g *graph) invoke(body []byte, rows int) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), g.limit)
	defer cancel()
	status, answer, err := g.call(ctx, http.MethodPost, "/invocations", body, answerBase+int64(rows)*answerPerRow)
	var gone *model.ServerError
	if errors.As(err, &gone) {
		g.fault.Store(&gone.Reason)
		return nil, err
	}
	if err == nil && (status == http.StatusBadGateway || status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout || status == http.StatusTooManyRequests) {
		err := unavailable("the scoring server answers %d", status)
		reason := err.Error()
		g.fault.Store(&reason)
		return nil, err
	}
	g.fault.Store(nil)
	switch {
	case err != nil:
		return nil, err
	case status != http.StatusOK:
		return nil, &refusedRows{status, quoteAnswer(answer)}
	}
	return answer, nil
}

// refusedRows is the answer of a server that is reachable and refuses the rows. Only the callers who sent the rows may
// read its text.
type refusedRows struct {
	status int
	said   string
}

func (e *refusedRows) Error() string {
	return fmt.Sprintf("the scoring server answers %d%s", e.status, e.said)
}

// call sends one request. A ServerError means that there was no complete answer; another error, that it is too large.
func (g *graph) call(ctx context.Context, method, path string, body []byte, most int64) (status int, answer []byte, err error) {
	base, err := g.server.base()
	if err != nil {
		return 0, nil, unavailable("%s", err)
	}
	req, err := http.NewRequestWithContext(ctx, method, base.JoinPath(path).String(), bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := g.client.Do(req)
	if err != nil {
		return 0, nil, g.noAnswer(ctx, err)
	}
	defer resp.Body.Close()
	if err := g.server.confirm(base); err != nil {
		return 0, nil, unavailable("%s", err)
	}
	answer, err = io.ReadAll(io.LimitReader(resp.Body, most+1))
	switch {
	case err != nil:
		return 0, nil, g.noAnswer(ctx, err)
	case int64(len(answer)) > most:
		return 0, nil, fmt.Errorf("the scoring server answers more than %d bytes", most)
	}
	return resp.StatusCode, answer, nil
}

// noAnswer describes the failure without the server's address, which callers need not know.
func (g *graph) noAnswer(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &model.ServerError{Late: true, Reason: fmt.Sprintf("the scoring server did not answer within %s", g.limit)}
	}
	return unavailable("the scoring server cannot be reached: %s", describeFailure(err))
}

// awaitPing waits until the server reports that it is ready.
func (g *graph) awaitPing(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	const between = 100 * time.Millisecond
	timer := time.NewTimer(between)
	defer timer.Stop()
	for {
		status, _, err := g.call(ctx, http.MethodGet, "/ping", nil, answerBase)
		if err == nil && status == http.StatusOK {
			return nil
		}
		if err == nil {
			err = unavailable("the scoring server answers GET /ping with %d", status)
		}
		started, ok := g.server.(*sidecar)
		if !ok {
			return err
		}
		if why := started.gaveUp(); why != nil {
			return why
		}
		timer.Reset(between)
		select {
		case <-timer.C:
		case <-ctx.Done():
			return fmt.Errorf("the scoring server was not ready within %s: %w", limit, err)
		}
	}
}

// probe determines the kind of answer from a row of zeros, where the model's files do not declare it. Python writes
// floating-point numbers with a point or an exponent.
func (g *graph) probe(s *schema.Schema) schema.Answer {
	in := make([]runtime.Tensor, len(g.inputs))
	for i, info := range g.inputs {
		in[i] = model.NewTensor(info.Type, []int64{1, info.Dims[1]})
	}
	raw, err := g.invoke(appendRows(bytes.Clone(g.head), in, 1, g.flat), 1)
	if err != nil {
		return schema.AnswerNumber
	}
	cells, err := predictions(raw)
	if err != nil || len(cells) != 1 {
		return schema.AnswerNumber
	}
	switch cell := string(cells[0]); {
	case strings.HasPrefix(cell, `"`):
		return schema.AnswerText
	case strings.ContainsAny(cell, ".eEnN") && cell != "true" && cell != "false":
		return schema.AnswerNumber
	}
	return schema.AnswerClass
}

// quoteAnswer returns the beginning of a server's error text, on one line.
func quoteAnswer(answer []byte) string {
	text := strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0xfeff || r >= 0x202a && r <= 0x202e {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(string(answer[:min(len(answer), 512)]), "?"))), " ")
	if text == "" {
		return ""
	}
	return ": " + problem.Shorten(text)
}
