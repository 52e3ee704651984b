package request

import (
	"bytes"
	"strconv"

	"github.com/mlp-platform/platform/libs/problem"
)

// Predict is the body of POST /predict/{model_name}.
type Predict struct {
	Features      []byte // a checked JSON object
	Alias         string
	Version       string
	Probabilities bool
}

// ParsePredict reads a predict request. scratch is reused by the caller; Features is a slice of body.
func ParsePredict(body []byte, scratch *Object) (p Predict, faults []problem.Field) {
	if faults := Parse(body, scratch); faults != nil {
		return p, faults
	}
	for _, m := range scratch.members {
		var fault *problem.Field
		switch string(m.Name) {
		case "features":
			if m.Value[0] != '{' {
				fault = &problem.Field{Loc: []string{"body", "features"}, Msg: "expected an object of column names and values, got " + kindName(m.Value[0])}
				break
			}
			p.Features = m.Value
		case "alias":
			p.Alias, fault = parseText(m)
		case "version":
			p.Version, fault = parseText(m)
		case "probabilities":
			switch m.Value[0] {
			case 't', 'f', 'n':
				p.Probabilities = m.Value[0] == 't'
			default:
				fault = &problem.Field{Loc: []string{"body", "probabilities"}, Msg: "expected true or false, got " + kindName(m.Value[0])}
			}
		default:
			fault = unknownMember(m)
		}
		if fault != nil && len(faults) < maxFaults {
			faults = append(faults, *fault)
		}
	}
	if p.Features == nil && len(faults) == 0 {
		faults = append(faults, problem.Field{Loc: []string{"body", "features"}, Msg: "this member is missing"})
	}
	return p, faults
}

func unknownMember(m Member) *problem.Field {
	return &problem.Field{Loc: []string{"body", problem.Shorten(string(m.Name))}, Msg: "this member is unknown"}
}

// EmbeddingSize is the length of the embedding that /infer-pipeline/infer takes.
const EmbeddingSize = 384

// Pipeline is the body of POST /infer-pipeline/infer. Embedding, NumNodes and UserID are JSON values,
// slices of the body; UserID is nil when absent.
type Pipeline struct {
	Embedding, NumNodes, UserID []byte
	JobID                       string
	Model                       string
	Alias                       string
	Version                     string
}

// ParsePipeline reads a pipeline request, whose members are at the top level or under "features"; if both have one, the
// top level wins.
func ParsePipeline(body []byte) (p Pipeline, faults []problem.Field) {
	var top, inner Object
	if faults := Parse(body, &top); faults != nil {
		return p, faults
	}
	at := []string{"body"}
	for _, m := range top.members {
		if string(m.Name) != "features" || m.Value[0] == 'n' {
			continue
		}
		if m.Value[0] != '{' {
			return p, []problem.Field{{Loc: []string{"body", "features"}, Msg: "expected an object, got " + kindName(m.Value[0])}}
		}
		at = []string{"body", "features"}
		if faults := Parse(m.Value, &inner); faults != nil {
			return p, faults
		}
	}
	faults = p.read(inner.members, at, faults)
	faults = p.read(top.members, []string{"body"}, faults)
	missing := func(name string) {
		faults = append(faults, problem.Field{Loc: append(append([]string(nil), at...), name), Msg: "this member is missing"})
	}
	if len(faults) > 0 {
		return p, faults
	}
	if p.Embedding == nil {
		missing("embedding")
	}
	if p.NumNodes == nil {
		missing("num_nodes")
	}
	return p, faults
}

func (p *Pipeline) read(members []Member, at []string, faults []problem.Field) []problem.Field {
	for _, m := range members {
		fault := (*problem.Field)(nil)
		switch string(m.Name) {
		case "features":
			if len(at) > 1 {
				fault = unknownMember(m)
			}
		case "embedding":
			p.Embedding, fault = m.Value, checkEmbedding(m.Value)
		case "num_nodes":
			p.NumNodes = m.Value
			if v, err := strconv.ParseInt(string(m.Value), 10, 64); err != nil || v < 1 {
				fault = &problem.Field{Msg: "expected a whole number of at least 1"}
			}
		case "user_id":
			switch c := m.Value[0]; {
			case c == 'n':
			case c == '"', c == '-', c >= '0' && c <= '9':
				p.UserID = m.Value
			default:
				fault = &problem.Field{Msg: "expected a string or a number, got " + kindName(c)}
			}
		case "job_id":
			if c := m.Value[0]; c == '-' || c >= '0' && c <= '9' { // schedulers number their jobs
				p.JobID = string(m.Value)
			} else {
				p.JobID, fault = parseText(m)
			}
			if msg := CheckJobID(p.JobID); fault == nil && msg != "" {
				fault = &problem.Field{Msg: msg}
			}
		case "model_name":
			p.Model, fault = parseText(m)
		case "alias":
			p.Alias, fault = parseText(m)
		case "version":
			p.Version, fault = parseText(m)
		default:
			fault = unknownMember(m)
		}
		if fault != nil && len(faults) < maxFaults {
			faults = append(faults, problem.Field{Loc: append(append([]string(nil), at...), problem.Shorten(string(m.Name))), Msg: fault.Msg})
		}
	}
	return faults
}

// checkEmbedding looks only at the shape; the elements are read by the model's schema.
func checkEmbedding(v []byte) *problem.Field {
	if v[0] != '[' {
		return &problem.Field{Msg: "expected a list of " + strconv.Itoa(EmbeddingSize) + " numbers, got " + kindName(v[0])}
	}
	n := 0
	for s := (scanner{b: v, i: 1}); s.next() != ']'; n++ {
		s.value()
	}
	if n != EmbeddingSize {
		return &problem.Field{Msg: lengthFault(n, EmbeddingSize)}
	}
	return nil
}

// Features returns the feature object with the columns of the model that a pipeline request can fill.
func (p *Pipeline) Features(has func(name string) (category, ok bool)) []byte {
	out := []byte{'{'}
	for _, f := range []struct {
		name  string
		value []byte
	}{{"embedding", p.Embedding}, {"num_nodes", p.NumNodes}, {"user_id", p.UserID}} {
		category, ok := has(f.name)
		if !ok || f.value == nil {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, '"')
		out = append(out, f.name...)
		out = append(out, '"', ':')
		number, text := f.value[0] != '"' && f.value[0] != '[', f.value[0] == '"'
		switch {
		case category && number: // 17 and "17" are the same user
			out = append(append(append(out, '"'), f.value...), '"')
		case !category && text && isNumber(f.value[1:len(f.value)-1]):
			out = append(out, f.value[1:len(f.value)-1]...)
		default:
			out = append(out, f.value...)
		}
	}
	return append(out, '}')
}

// isNumber is the JSON grammar of integers; other numbers make no user id.
func isNumber(b []byte) bool {
	digits := bytes.TrimPrefix(b, []byte("-"))
	if len(digits) == 0 || len(digits) > 18 || digits[0] == '0' && len(digits) > 1 {
		return false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}
