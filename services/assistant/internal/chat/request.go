package chat

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mlp-platform/platform/libs/chattext"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
)

// Bounds of a request.
const (
	MaxMessages = 1000
	MaxText     = 512 << 10 // bytes of one message's text
	MaxUser     = 256       // characters
	MaxBody     = 1 << 20   // bytes, unless configured otherwise
)

// DefaultUser is the user of a request that names none.
const DefaultUser = "default"

// Message is one message of a request, reduced to its text.
type Message struct {
	Role, Text string
	// Unspoken marks a user message that a program wrote, such as an alert: it expresses no user's wish.
	Unspoken bool `json:",omitempty"`
}

// Roles with a meaning here; all others are accepted and ignored.
const (
	RoleUser      = "user"
	RoleAssistant = "assistant"
)

// Request is the body of a chat request that passed validation.
type Request struct {
	// Model is the name that the client sent; it chooses at most the profile.
	Model string
	// Query is the last user message without its context groups, normalized and trimmed. It may be empty.
	Query string
	// Context is the content of those groups.
	Context Context
	// Page is the content that the client says it shows its user; anyone may have written it.
	Page string
	// History holds the earlier user and assistant messages. It seeds a new session only.
	History []Message
	// User is opaque, for the audit log.
	User string
	// AutoApprove skips approval in this request, where rules allow it.
	AutoApprove bool
	// NoDecisions is "decisions": false: the caller has not asked its users for a decision, so no word of the message
	// decides.
	NoDecisions bool
	// IncludeUsage adds token counts to the completion.
	IncludeUsage bool
	// StreamAbsent reports that the body has no stream member; see [RequireStream].
	StreamAbsent bool
	// QuotedIDs are the ids that the last assistant message quotes; see SessionHint.
	QuotedIDs []string
}

// Parse reads and validates a body. Its error is a problem: 422, with every fault found. Half a surrogate pair reads as
// U+FFFD: chat histories contain model output, and one bad character must not end a session.
func Parse(raw []byte) (Request, error) {
	if !utf8.Valid(raw) { // otherwise names that differ only in broken bytes would be equal
		return Request{}, fault.Invalid(problem.Field{Loc: []string{"body"}, Msg: "not UTF-8"})
	}
	var d document
	if err := service.ParseForeignJSON(raw, &d, false); err != nil {
		return Request{}, err
	}
	return d.request()
}

// document is a body with checked types, before its rules are checked.
type document struct {
	model        string
	messages     []message
	user         string
	stream       bool
	streamNamed  bool
	autoApprove  bool
	decisions    bool
	includeUsage bool

	faults faults
}

// message is a Message with the further fields that the rules need.
type message struct {
	Message
	textless bool // neither a string nor a part with text
}

// UnmarshalJSON takes members by their exact names, where encoding/json would let "Stream" overrule "stream".
func (d *document) UnmarshalJSON(raw []byte) error {
	*d = document{user: DefaultUser, stream: true, decisions: true}
	at := []string{"body"}
	if !eachMember(raw, func(name string, value json.RawMessage) {
		loc := append(slices.Clone(at), name)
		switch name {
		case "model":
			d.faults.text(loc, value, &d.model)
		case "messages":
			d.readMessages(loc, value)
		case "stream":
			d.stream, d.streamNamed = string(value) == "true", true
		case "user":
			d.readUser(loc, value)
		case "auto_approve":
			d.faults.flag(loc, value, &d.autoApprove)
		case "decisions":
			d.faults.flag(loc, value, &d.decisions)
		case "stream_options":
			d.readStreamOptions(loc, value)
		}
	}) {
		d.faults.add(at, "must be an object")
	}
	return nil
}

func (d *document) readUser(loc []string, value json.RawMessage) {
	d.faults.text(loc, value, &d.user)
	if utf8.RuneCountInString(d.user) > MaxUser {
		d.faults.add(loc, fmt.Sprintf("must have at most %d characters", MaxUser))
	}
	if d.user == "" {
		d.user = DefaultUser
	}
}

func (d *document) readStreamOptions(loc []string, value json.RawMessage) {
	if isNull(value) {
		return
	}
	if !eachMember(value, func(name string, value json.RawMessage) {
		if name == "include_usage" {
			d.faults.flag(append(loc, name), value, &d.includeUsage)
		}
	}) {
		d.faults.add(loc, "must be an object")
	}
}

func (d *document) readMessages(loc []string, value json.RawMessage) {
	d.messages = nil
	if isNull(value) {
		return
	}
	if !eachElement(value, func(i int, value json.RawMessage) bool {
		if i == MaxMessages {
			d.faults.add(loc, fmt.Sprintf("must have at most %d messages", MaxMessages))
			return false
		}
		d.messages = append(d.messages, d.readMessage(elementPath(loc, i), value))
		return true
	}) {
		d.faults.add(loc, "must be a list")
	}
}

func (d *document) readMessage(loc []string, value json.RawMessage) message {
	m := message{textless: true}
	role := false
	if !eachMember(value, func(name string, value json.RawMessage) {
		loc := append(slices.Clone(loc), name)
		switch name {
		case "role":
			role = true
			if isNull(value) {
				d.faults.add(loc, "must be a string")
				return
			}
			d.faults.text(loc, value, &m.Role)
		case "content":
			m.Text, m.textless = d.readContent(loc, value)
		}
	}) {
		d.faults.add(loc, "must be an object")
		return m
	}
	if !role {
		d.faults.add(append(slices.Clone(loc), "role"), "must be a string")
	}
	return m
}

// readContent returns the text of a content: a string, or the text parts of a list joined by line feeds. Null is an
// answer that had tool calls only.
func (d *document) readContent(loc []string, value json.RawMessage) (text string, textless bool) {
	switch value[0] {
	case 'n':
		return "", true
	case '"':
		d.faults.text(loc, value, &text)
	case '[':
		text, textless = d.readParts(loc, value)
	default:
		d.faults.add(loc, "must be a string or a list of parts")
		return "", true
	}
	if len(text) > MaxText {
		d.faults.add(loc, fmt.Sprintf("must have at most %d bytes of text", MaxText))
	}
	return chattext.Normalize(text), textless
}

func (d *document) readParts(loc []string, value json.RawMessage) (text string, textless bool) {
	var b strings.Builder
	textless = true
	eachElement(value, func(i int, value json.RawMessage) bool {
		loc := elementPath(loc, i)
		var kind, part string
		var content json.RawMessage
		if !eachMember(value, func(name string, value json.RawMessage) {
			switch name {
			case "type":
				d.faults.text(append(slices.Clone(loc), name), value, &kind)
			case "text":
				content = slices.Clone(value)
			}
		}) {
			d.faults.add(loc, "must be an object")
			return true
		}
		if kind != "text" {
			return true
		}
		if content == nil || isNull(content) {
			d.faults.add(append(loc, "text"), "must be a string")
			return true
		}
		d.faults.text(append(loc, "text"), content, &part)
		if !textless {
			b.WriteByte('\n')
		}
		textless = false
		b.WriteString(part)
		return true
	})
	return b.String(), textless
}

// request checks the rules beyond types, in the order of the API.
func (d *document) request() (Request, error) {
	if len(d.faults.list) > 0 {
		return Request{}, fault.Invalid(d.faults.list...)
	}
	last := -1
	for i, m := range d.messages {
		if m.Role == RoleUser {
			last = i
		}
	}
	switch {
	case last < 0:
		return Request{}, fault.NoUserMessage.New("Nothing was asked: send at least one message whose role is user.").
			WithErrors(problem.Field{Loc: []string{"body", "messages"}, Msg: "must have a user message"})
	case d.messages[last].textless:
		return Request{}, fault.Invalid(problem.Field{Loc: append(elementPath([]string{"body", "messages"}, last), "content"), Msg: "must have text"})
	case !d.stream:
		return Request{}, streamRequired()
	}
	r := Request{Model: d.model, User: d.user, AutoApprove: d.autoApprove, NoDecisions: !d.decisions, IncludeUsage: d.includeUsage, StreamAbsent: !d.streamNamed, QuotedIDs: d.quoted()}
	page, text := chattext.CutPage(d.messages[last].Text)
	r.Page = page
	r.Context, r.Query = CutContext(text)
	for _, m := range d.messages[:last] {
		switch m.Role {
		case RoleUser:
			_, m.Text = chattext.CutPage(m.Text)
			_, m.Text = CutContext(m.Text)
		case RoleAssistant:
		default: // system and tool messages of a client are not the assistant's own
			continue
		}
		if m.Text != "" {
			r.History = append(r.History, m.Message)
		}
	}
	return r, nil
}

func streamRequired() error {
	return fault.StreamRequired.New(`Answers are streamed: send "stream": true or leave it out, and turn off title or tag generation in the chat client.`).
		WithErrors(problem.Field{Loc: []string{"body", "stream"}, Msg: "must be true"})
}

// RequireStream refuses a request of the strict profile without a stream member. SDKs omit it to request one JSON
// document; given a stream they would return it as a raw string.
func (r Request) RequireStream(p Profile) error {
	if r.StreamAbsent && p == Strict {
		return streamRequired()
	}
	return nil
}

// quoted returns the ids in the last assistant message.
func (d *document) quoted() []string {
	for _, m := range slices.Backward(d.messages) {
		if m.Role == RoleAssistant {
			return quotedIDs(m.Text)
		}
	}
	return nil
}
