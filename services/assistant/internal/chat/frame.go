package chat

import (
	"strconv"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/fault"
)

// Phase is the phase of a turn.
type Phase string

// The phases.
const (
	Loading          Phase = "loading"
	Snapshot         Phase = "snapshot"
	Planning         Phase = "planning"
	Investigating    Phase = "investigating"
	Synthesizing     Phase = "synthesizing"
	AwaitingApproval Phase = "awaiting_approval"
	Executing        Phase = "executing"
	Verifying        Phase = "verifying"
)

// StepStatus is the status of a step of a plan.
type StepStatus string

// The states of a step.
const (
	StepPending    StepStatus = "pending"
	StepInProgress StepStatus = "in_progress"
	StepDone       StepStatus = "done"
	StepSkipped    StepStatus = "skipped"
)

// Step is one line of a plan.
type Step struct {
	Description string
	Status      StepStatus
}

// Approval is the content of an approval prompt for a pending action.
type Approval struct {
	ActionID      string
	RiskLevel     string
	HumanSummary  string // the command that will run, shown unchanged
	AlwaysConfirm bool
	ExpiresAt     time.Time
	Digest        string // sha256:<hex>
	Cluster       string // left out if empty
}

// Usage counts the tokens of a language model; zero if none took part.
type Usage struct{ PromptTokens, CompletionTokens int64 }

// ToolResult is the outcome of one tool call.
type ToolResult struct {
	Tool, CallID string
	Output       string // cut to MaxOutput code points
	OK           bool
	Truncated    bool // the tool itself truncated its output
}

// MaxOutput limits the part of a tool's output in a frame, in code points.
const MaxOutput = 500

// Frames that are the same in every stream.
const (
	Done      = "data: [DONE]\n\n"
	Heartbeat = ": heartbeat\n\n" // never stored
)

const (
	dataField = "data: "
	frameEnd  = "\n\n"

	handshakeStart = `{"protocol_version":"1.0","object":"stream.start","session_id":`
	eventStart     = `"choices":[],"ki_event":`
	deltaStart     = `"choices":[{"index":0,"delta":{`
	deltaRole      = `,"role":"assistant"}`
	choiceOpen     = `,"finish_reason":null`
	choiceStop     = `,"finish_reason":"stop"`
	usageStart     = `,"usage":`
)

// Head holds the members that every chunk of a turn repeats.
type Head struct {
	SessionID string
	ID        string // chatcmpl- and 12 hex digits
	Created   time.Time
	Model     string
}

// Encoder encodes the canonical frames of one turn. Each method appends one whole frame to dst and returns it. It does
// not change the encoder, which is safe for concurrent use.
type Encoder struct {
	session string
	start   []byte // of every chunk, from the field name to the comma after model
}

// NewEncoder makes the encoder of one turn.
func NewEncoder(h Head) *Encoder {
	start := appendString([]byte(dataField+`{"id":`), h.ID)
	start = append(start, `,"object":"chat.completion.chunk","created":`...)
	start = strconv.AppendInt(start, h.Created.Unix(), 10)
	start = appendString(append(start, `,"model":`...), h.Model)
	return &Encoder{session: h.SessionID, start: append(start, ',')}
}

// Handshake is the first frame.
func (e *Encoder) Handshake(dst []byte) []byte {
	dst = appendString(append(dst, dataField+handshakeStart...), e.session)
	return append(dst, "}"+frameEnd...)
}

// Status is a change of phase.
func (e *Encoder) Status(dst []byte, phase Phase, message string) []byte {
	dst = appendString(append(e.event(dst, "status"), `,"phase":`...), string(phase))
	return endEvent(appendText(append(dst, `,"message":`...), message))
}

// Plan is the list of all steps with their status.
func (e *Encoder) Plan(dst []byte, steps []Step) []byte {
	dst = append(e.event(dst, "plan"), `,"steps":[`...)
	for i, s := range steps {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendText(append(dst, `{"description":`...), s.Description)
		dst = append(appendString(append(dst, `,"status":`...), string(s.Status)), '}')
	}
	return endEvent(append(dst, ']'))
}

// ToolCall announces the call of a tool.
func (e *Encoder) ToolCall(dst []byte, tool, message, callID string) []byte {
	dst = appendString(append(e.event(dst, "tool_call"), `,"tool":`...), tool)
	dst = appendText(append(dst, `,"message":`...), message)
	return endEvent(appendString(append(dst, `,"call_id":`...), callID))
}

// ToolResult is the result of a tool call.
func (e *Encoder) ToolResult(dst []byte, r ToolResult) []byte {
	output, was := cutText(Prose(r.Output), MaxOutput)
	dst = appendString(append(e.event(dst, "tool_result"), `,"tool":`...), r.Tool)
	dst = appendString(append(dst, `,"output":`...), output)
	dst = appendString(append(dst, `,"call_id":`...), r.CallID)
	dst = strconv.AppendBool(append(dst, `,"ok":`...), r.OK)
	return endEvent(strconv.AppendBool(append(dst, `,"truncated":`...), r.Truncated || was))
}

// Error is a failure; a fatal one ends the turn.
func (e *Encoder) Error(dst []byte, f fault.Failure, fatal bool) []byte {
	dst = strconv.AppendBool(append(e.event(dst, "error"), `,"fatal":`...), fatal)
	dst = appendString(append(dst, `,"code":`...), f.Code)
	return endEvent(appendText(append(dst, `,"message":`...), f.Message))
}

// Token is a part of the answer.
func (e *Encoder) Token(dst []byte, text string) []byte {
	return append(e.content(dst, text), "}]}"+frameEnd...)
}

// Approval is a part of the answer that requests a decision.
func (e *Encoder) Approval(dst []byte, text string, a Approval) []byte {
	return append(appendApproval(e.content(dst, Visible(Prose(text))), a), "}]}"+frameEnd...)
}

// Completion is the last frame before Done. It repeats the pending action, if any, and includes usage if requested.
func (e *Encoder) Completion(dst []byte, pending *Approval, usage *Usage) []byte {
	dst = append(append(dst, e.start...), deltaStart+"}"+choiceStop...)
	if pending != nil {
		dst = appendApproval(dst, *pending)
	}
	dst = append(dst, "}]"...)
	if usage != nil {
		dst = strconv.AppendInt(append(dst, usageStart+`{"prompt_tokens":`...), usage.PromptTokens, 10)
		dst = strconv.AppendInt(append(dst, `,"completion_tokens":`...), usage.CompletionTokens, 10)
		dst = strconv.AppendInt(append(dst, `,"total_tokens":`...), usage.PromptTokens+usage.CompletionTokens, 10)
		dst = append(dst, '}')
	}
	return append(dst, "}"+frameEnd...)
}

func (e *Encoder) event(dst []byte, kind string) []byte {
	return append(append(append(append(dst, e.start...), eventStart+`{"type":"`...), kind...), '"')
}

func endEvent(dst []byte) []byte { return append(dst, "}}"+frameEnd...) }

func (e *Encoder) content(dst []byte, text string) []byte {
	dst = appendText(append(append(dst, e.start...), deltaStart+`"content":`...), text)
	return append(dst, deltaRole+choiceOpen...)
}

func appendApproval(dst []byte, a Approval) []byte {
	dst = appendString(append(dst, `,"hitl_required":true,"action_id":`...), a.ActionID)
	dst = appendString(append(dst, `,"risk_level":`...), a.RiskLevel)
	dst = appendString(append(dst, `,"human_summary":`...), Visible(a.HumanSummary))
	dst = strconv.AppendBool(append(dst, `,"always_confirm":`...), a.AlwaysConfirm)
	dst = append(dst, `,"expires_at":"`...)
	dst = append(a.ExpiresAt.UTC().AppendFormat(dst, time.RFC3339), '"')
	dst = appendString(append(dst, `,"digest":`...), a.Digest)
	if a.Cluster == "" {
		return dst
	}
	return appendString(append(dst, `,"cluster":`...), a.Cluster)
}
