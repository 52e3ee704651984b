package assistant

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/libs/chattext"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/input"
)

// Limits of a question.
const (
	maxQuestion = 4000    // characters
	maxContext  = 8 << 10 // bytes of the context's JSON
	maxFenced   = 1500    // characters of the context that the assistant sees
)

// Message is a question that passed validation, with the page that it was asked on.
type Message struct {
	question string
	context  []byte // JSON; nil without a context
}

// NewMessage checks a question and its context; the error is a 422.
func NewMessage(question string, page *api.CopilotContext) (Message, error) {
	question = strings.TrimSpace(chattext.Normalize(question))
	switch n := utf8.RuneCountInString(question); {
	case n == 0:
		return Message{}, input.Invalid("must not be empty", "body", "question")
	case n > maxQuestion:
		return Message{}, input.Invalid("must have at most 4,000 characters", "body", "question")
	case strings.ContainsRune(question, 0):
		return Message{}, input.Invalid("must not hold the character U+0000", "body", "question")
	}
	if carried, _ := chattext.CutPage(question); carried != "" {
		return Message{}, input.Invalid("must not end in a page context, which this service alone writes; send it as context", "body", "question")
	}
	m := Message{question: question}
	if page != nil {
		raw, err := encodeContext(page)
		if err != nil {
			return Message{}, input.Invalid("must be JSON", "body", "context")
		}
		if len(raw) > maxContext {
			return Message{}, input.Invalid("must have at most 8 KiB", "body", "context")
		}
		m.context = raw
	}
	return m, nil
}

// encodeContext encodes JSON without HTML escapes, which would count towards the size limit.
func encodeContext(page *api.CopilotContext) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(page)
	return bytes.TrimSpace(b.Bytes()), err
}

// Question returns the text that the person wrote.
func (m Message) Question() string { return m.question }

// Text returns the message sent to the assistant: the question, then the page's content, fenced as untrusted data.
func (m Message) Text() string {
	if m.context == nil {
		return m.question
	}
	return chattext.AddPage(m.question, string(m.context), maxFenced)
}
