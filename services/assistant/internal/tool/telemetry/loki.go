package telemetry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
	"github.com/mlp-platform/platform/services/assistant/internal/tool/clip"
	"github.com/mlp-platform/platform/services/assistant/internal/tool/table"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

const (
	defaultLines = 100
	defaultSince = time.Hour
	maxLine      = 500 // characters of one log line
)

// Loki is the log store. A nil one is not configured.
type Loki struct {
	base *url.URL
	http *http.Client
	now  func() time.Time
}

// NewLoki makes a client of the store at base; an empty one gives nil.
func NewLoki(base string, now func() time.Time) (*Loki, error) {
	if base == "" {
		return nil, nil
	}
	u, err := parseAddress("LOKI_URL", base)
	if err != nil {
		return nil, err
	}
	return &Loki{u, newHTTPClient(), now}, nil
}

// Query reads the newest lines that a LogQL expression chooses, or the series that it
// counts. Zero values of limit and since are the defaults.
func (l *Loki) Query(ctx context.Context, logql string, limit int, since time.Duration, hidden Hidden) (turn.Output, error) {
	if l == nil {
		return turn.Output{}, notConfigured("log store", "LOKI_URL")
	}
	if limit == 0 {
		limit = defaultLines
	}
	if since == 0 {
		since = defaultSince
	}
	logql, err := hidden.close(logql, false)
	if err != nil {
		return turn.Output{}, err
	}
	now := l.now()
	at := l.base.JoinPath("loki/api/v1/query_range")
	at.RawQuery = url.Values{
		"query": {logql}, "limit": {strconv.Itoa(limit)}, "direction": {"backward"},
		"start": {strconv.FormatInt(now.Add(-since).UnixNano(), 10)}, "end": {strconv.FormatInt(now.UnixNano(), 10)},
	}.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return turn.Output{}, unavailableStore(fault.LogsUnavailable, err)
	}
	request.Header.Set("Accept", "application/json")
	answer, err := l.http.Do(request)
	if err != nil {
		return turn.Output{}, unavailableStore(fault.LogsUnavailable, err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	body, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return turn.Output{}, unavailableStore(fault.LogsUnavailable, err)
	case answer.StatusCode == http.StatusBadRequest:
		return turn.Output{}, refusedQuery("Loki", string(body)) // in plain text
	case answer.StatusCode != http.StatusOK:
		return turn.Output{}, unavailableStore(fault.LogsUnavailable, fmt.Errorf("log store: status %d", answer.StatusCode))
	}
	text, cut, err := writeLogs(body, limit, hidden)
	if err != nil {
		return turn.Output{}, unavailableStore(fault.LogsUnavailable, err)
	}
	text, clipped := clip.Tail(redact.Text(text), maxCharacters, "filter lines or shorten since")
	return turn.Output{Text: text, Truncated: cut || clipped, Untrusted: []string{text}}, nil
}

// lokiAnswer is Loki's answer: the shape of Prometheus, and a further type of result.
type lokiAnswer struct {
	Status string `json:"status"`
	Data   struct {
		ResultType string          `json:"resultType"`
		Result     json.RawMessage `json:"result"`
	} `json:"data"`
}

// stream is the lines of one source. A value is a time in nanoseconds, the line, and
// with newer servers its structured metadata.
type stream struct {
	Labels map[string]string   `json:"stream"`
	Values [][]json.RawMessage `json:"values"`
}

// writeLogs shows an answer of the log store: lines oldest first, or series.
func writeLogs(answer []byte, limit int, hidden Hidden) (text string, cut bool, err error) {
	var a lokiAnswer
	if err := json.Unmarshal(answer, &a); err != nil {
		return "", false, fmt.Errorf("log store: %w", err)
	}
	if a.Status != "success" {
		return "", false, errors.New("log store: no success")
	}
	switch a.Data.ResultType {
	case "streams":
		var streams []stream
		if err := json.Unmarshal(a.Data.Result, &streams); err != nil {
			return "", false, fmt.Errorf("log store: %w", err)
		}
		return mergeStreams(streams, limit, hidden)
	case "matrix":
		var m model.Matrix
		if err := json.Unmarshal(a.Data.Result, &m); err != nil {
			return "", false, fmt.Errorf("log store: %w", err)
		}
		text, cut = formatValue(m, hidden)
		return text, cut, nil
	case "vector":
		var v model.Vector
		if err := json.Unmarshal(a.Data.Result, &v); err != nil {
			return "", false, fmt.Errorf("log store: %w", err)
		}
		text, cut = formatValue(v, hidden)
		return text, cut, nil
	}
	return "", false, errors.New("log store: unknown type of result")
}

type line struct {
	at           int64
	source, text string
}

// mergeStreams puts the lines of all sources in order of time.
func mergeStreams(streams []stream, limit int, hidden Hidden) (text string, cut bool, err error) {
	var all []line
	for _, s := range streams {
		if hidden.reveals(slices.Collect(maps.Values(s.Labels))) {
			continue
		}
		for _, value := range s.Values {
			var at, text string
			if len(value) < 2 || json.Unmarshal(value[0], &at) != nil || json.Unmarshal(value[1], &text) != nil {
				return "", false, errors.New("log store: a value is no time and line")
			}
			nanos, err := strconv.ParseInt(at, 10, 64)
			if err != nil {
				return "", false, errors.New("log store: a value has no time")
			}
			all = append(all, line{nanos, sourceName(s.Labels), strings.TrimRight(text, "\r\n")})
		}
	}
	if len(all) == 0 {
		return "No lines match.\n", false, nil
	}
	slices.SortStableFunc(all, func(a, b line) int { return cmp.Compare(a.at, b.at) })
	cut = len(all) >= limit
	all = all[max(0, len(all)-limit):]
	var b strings.Builder
	if cut {
		fmt.Fprintf(&b, "[the newest %d lines; there may be more]\n", len(all))
	}
	for _, l := range all {
		fmt.Fprintf(&b, "%s %s %s\n", time.Unix(0, l.at).UTC().Format("15:04:05"), l.source, table.Line(redact.Text(l.text), maxLine))
	}
	return b.String(), cut, nil
}

// sourceName names a stream by pod and container where its labels tell them.
func sourceName(labels map[string]string) string {
	if pod := labels["pod"]; pod != "" {
		return table.Line(strings.Join(slices.DeleteFunc([]string{labels["namespace"], pod, labels["container"]}, func(s string) bool { return s == "" }), "/"), maxLabels)
	}
	pairs := make([]string, 0, len(labels))
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, name+"="+strconv.Quote(labels[name]))
	}
	return table.Line("{"+strings.Join(pairs, ", ")+"}", maxLabels)
}
