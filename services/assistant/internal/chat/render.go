package chat

import (
	"bytes"
	"encoding/json"
	"errors"
)

// ErrNotCanonical means that no Encoder produced the bytes.
var ErrNotCanonical = errors.New("chat: not a canonical frame")

// Renderer converts canonical frames to the form that one reader requested. It belongs to one stream and one goroutine.
type Renderer struct {
	profile Profile
	role    bool // the strict stream's one delta with a role has been sent
}

// NewRenderer makes the renderer of one stream.
func NewRenderer(p Profile) *Renderer { return &Renderer{profile: p} }

// Render appends one frame in the reader's form. id is the event id, "" for none. If the frame becomes several, the
// last one has the id, so that a reader that resumes after it misses nothing. Done and Heartbeat pass unchanged.
func (r *Renderer) Render(dst, frame []byte, id string) ([]byte, error) {
	payload, ok := Payload(frame)
	switch {
	case string(frame) == Heartbeat:
		return append(dst, frame...), nil
	case !ok:
		return dst, ErrNotCanonical
	case r.profile == Canonical, string(frame) == Done:
		return append(appendID(dst, id), frame...), nil
	case bytes.HasPrefix(payload, []byte(handshakeStart)):
		return appendComment(dst, payload), nil
	}
	head, rest, ok := splitChunk(payload)
	if !ok {
		return dst, ErrNotCanonical
	}
	before := len(dst)
	if !r.role {
		dst = append(append(append(dst, dataField...), head...), deltaStart+`"role":"assistant","content":""}`+choiceOpen+"}]}"+frameEnd...)
	}
	dst, err := appendStrict(dst, head, rest, id)
	if err != nil {
		return dst[:before], err
	}
	r.role = true
	return dst, nil
}

// Payload is the JSON of a frame, or [DONE]; false if it has none.
func Payload(frame []byte) ([]byte, bool) {
	p, ok := bytes.CutPrefix(frame, []byte(dataField))
	if !ok {
		return nil, false
	}
	return bytes.CutSuffix(p, []byte(frameEnd))
}

// splitChunk splits a chunk before its choices. Quotes inside strings are escaped, so the first match is the member.
func splitChunk(payload []byte) (head, rest []byte, ok bool) {
	i := bytes.Index(payload, []byte(`,"choices":[`))
	if i < 0 {
		return nil, nil, false
	}
	return payload[:i+1], payload[i+1:], true
}

func appendStrict(dst, head, rest []byte, id string) ([]byte, error) {
	if event, ok := bytes.CutPrefix(rest, []byte(eventStart)); ok {
		event, ok = bytes.CutSuffix(event, []byte("}"))
		if !ok {
			return dst, ErrNotCanonical
		}
		return strictEvent(appendComment(dst, event), head, event, id)
	}
	delta, ok := bytes.CutPrefix(rest, []byte(deltaStart))
	if !ok {
		return dst, ErrNotCanonical
	}
	if text, ok := bytes.CutPrefix(delta, []byte(`"content":`)); ok {
		n := stringLen(text)
		after, ok := bytes.CutPrefix(text[n:], []byte(deltaRole))
		if n == 0 || !ok {
			return dst, ErrNotCanonical
		}
		dst = append(append(append(appendID(dst, id), dataField...), head...), deltaStart+`"content":`...)
		return append(append(append(append(dst, text[:n]...), '}'), after...), frameEnd...), nil
	}
	return strictCompletion(dst, head, rest, id)
}

// strictEvent shows tool calls in clients that support reasoning and do not see the comments for events.
func strictEvent(dst, head, event []byte, id string) ([]byte, error) {
	if !bytes.HasPrefix(event, []byte(`{"type":"tool_call"`)) {
		return dst, nil
	}
	var call struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(event, &call) != nil {
		return dst, ErrNotCanonical
	}
	dst = append(append(append(appendID(dst, id), dataField...), head...), deltaStart+`"reasoning_content":`...)
	return append(appendString(dst, call.Message+"\n"), "}"+choiceOpen+"}]}"+frameEnd...), nil
}

// strictCompletion moves usage into a separate chunk.
func strictCompletion(dst, head, rest []byte, id string) ([]byte, error) {
	at := bytes.LastIndex(rest, []byte("}]"+usageStart))
	if at < 0 {
		return append(append(append(append(appendID(dst, id), dataField...), head...), rest...), frameEnd...), nil
	}
	usage := rest[at+len("}]"):]
	dst = append(append(append(append(dst, dataField...), head...), rest[:at]...), "}]}"+frameEnd...)
	dst = append(append(append(appendID(dst, id), dataField...), head...), `"choices":[]`...)
	return append(append(dst, usage...), frameEnd...), nil
}

// stringLen is the length of the JSON string that b begins with, 0 if it begins with none.
func stringLen(b []byte) int {
	if len(b) == 0 || b[0] != '"' {
		return 0
	}
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return 0
}

func appendID(dst []byte, id string) []byte {
	if id == "" {
		return dst
	}
	return append(append(append(dst, "id: "...), id...), '\n')
}

func appendComment(dst, json []byte) []byte {
	return append(append(append(dst, ": ki "...), json...), frameEnd...)
}
