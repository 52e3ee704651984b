package assistanttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// Item is one block of a stream: a comment, or data with its id.
type Item struct {
	Comment string
	ID      string
	Data    []byte
}

// Chunk is the data of an item.
type Chunk struct {
	ProtocolVersion string   `json:"protocol_version"` // of a handshake
	SessionID       string   `json:"session_id"`
	ID              string   `json:"id"`
	Object          string   `json:"object"`
	Created         int64    `json:"created"`
	Model           string   `json:"model"`
	Choices         []Choice `json:"choices"`
	Event           *Event   `json:"ki_event"`
	Usage           *Usage   `json:"usage"`
}

// Choice is the one choice of a chunk.
type Choice struct {
	Index int `json:"index"`
	Delta struct {
		Content          *string `json:"content"`
		Role             string  `json:"role"`
		ReasoningContent *string `json:"reasoning_content"`
	} `json:"delta"`
	FinishReason  *string `json:"finish_reason"`
	HITLRequired  bool    `json:"hitl_required"`
	ActionID      string  `json:"action_id"`
	RiskLevel     string  `json:"risk_level"`
	HumanSummary  string  `json:"human_summary"`
	AlwaysConfirm bool    `json:"always_confirm"`
	ExpiresAt     string  `json:"expires_at"`
	Digest        string  `json:"digest"`
}

// Event is a ki_event of any type.
type Event struct {
	Type      string `json:"type"`
	Phase     string `json:"phase"`
	Message   string `json:"message"`
	Tool      string `json:"tool"`
	CallID    string `json:"call_id"`
	Output    string `json:"output"`
	OK        bool   `json:"ok"`
	Truncated bool   `json:"truncated"`
	Fatal     bool   `json:"fatal"`
	Code      string `json:"code"`
	Steps     []Step `json:"steps"`
}

// Step is one line of a plan.
type Step struct {
	Description string `json:"description"`
	Status      string `json:"status"`
}

// Usage counts tokens.
type Usage struct {
	PromptTokens     int64 `json:"prompt_tokens"`
	CompletionTokens int64 `json:"completion_tokens"`
	TotalTokens      int64 `json:"total_tokens"`
}

// SplitStream splits a stream. It fails on anything but comments, ids and single data lines, on a block without a final
// empty line, and on characters that end a line for the line splitter of any language.
func SplitStream(stream []byte) ([]Item, error) {
	if !utf8.Valid(stream) {
		return nil, fmt.Errorf("not UTF-8")
	}
	if i := bytes.IndexFunc(stream, func(r rune) bool { return unicode.IsControl(r) && r != '\n' || r == '\u2028' || r == '\u2029' }); i >= 0 {
		return nil, fmt.Errorf("byte %d begins a character that must be escaped", i)
	}
	var items []Item
	for n := 1; len(stream) > 0; n++ {
		block, rest, ok := bytes.Cut(stream, []byte("\n\n"))
		if !ok {
			return nil, fmt.Errorf("block %d does not end", n)
		}
		item, err := readBlock(string(block))
		if err != nil {
			return nil, fmt.Errorf("block %d: %w: %q", n, err, block)
		}
		items = append(items, item)
		stream = rest
	}
	return items, nil
}

func readBlock(block string) (Item, error) {
	if comment, ok := strings.CutPrefix(block, ": "); ok && !strings.Contains(comment, "\n") {
		return Item{Comment: comment}, nil
	}
	var item Item
	if rest, ok := strings.CutPrefix(block, "id: "); ok {
		if item.ID, block, ok = strings.Cut(rest, "\n"); !ok || item.ID == "" {
			return Item{}, fmt.Errorf("an id without data")
		}
	}
	data, ok := strings.CutPrefix(block, "data: ")
	if !ok || strings.Contains(data, "\n") {
		return Item{}, fmt.Errorf("not one line of data")
	}
	item.Data = []byte(data)
	return item, nil
}

// ReadStream reads a stream to its end and splits it.
func ReadStream(t testing.TB, r io.Reader) []Item {
	t.Helper()
	raw, err := io.ReadAll(io.LimitReader(r, 64<<20))
	if err != nil {
		t.Fatal(err)
	}
	items, err := SplitStream(raw)
	if err != nil {
		t.Fatal(err)
	}
	return items
}

// DecodeChunks decodes the data of a stream, which must end with its one [DONE].
func DecodeChunks(t testing.TB, items []Item) []Chunk {
	t.Helper()
	var out []Chunk
	done := false
	for _, item := range items {
		switch {
		case item.Data == nil:
			continue
		case done:
			t.Fatalf("data after [DONE]: %s", item.Data)
		case string(item.Data) == "[DONE]":
			done = true
			continue
		}
		var c Chunk
		if err := json.Unmarshal(item.Data, &c); err != nil {
			t.Fatalf("%v: %s", err, item.Data)
		}
		out = append(out, c)
	}
	if !done {
		t.Fatal("no [DONE]")
	}
	return out
}

// AnswerText concatenates the text of the chunks.
func AnswerText(chunks []Chunk) string {
	var b strings.Builder
	for _, c := range chunks {
		for _, choice := range c.Choices {
			if choice.Delta.Content != nil {
				b.WriteString(*choice.Delta.Content)
			}
		}
	}
	return b.String()
}
