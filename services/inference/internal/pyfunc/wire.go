package pyfunc

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/mlp-platform/platform/libs/onnx/runtime"
)

// appendRows writes the rows of the inputs and closes the request.
func appendRows(dst []byte, in []runtime.Tensor, rows int, flat bool) []byte {
	for row := range rows {
		if row > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, '[')
		for i := range in {
			if i > 0 {
				dst = append(dst, ',')
			}
			width := 1
			if len(in[i].Dims) == 2 {
				width = int(in[i].Dims[1])
			}
			list := width > 1 && !flat
			if list {
				dst = append(dst, '[')
			}
			for at := row * width; at < (row+1)*width; at++ {
				if at > row*width {
					dst = append(dst, ',')
				}
				dst = appendValue(dst, &in[i], at)
			}
			if list {
				dst = append(dst, ']')
			}
		}
		dst = append(dst, ']')
	}
	return append(dst, `]}}`...)
}

func appendValue(dst []byte, t *runtime.Tensor, at int) []byte {
	switch {
	case t.Int64s != nil:
		return strconv.AppendInt(dst, t.Int64s[at], 10)
	case t.Bools != nil:
		return strconv.AppendBool(dst, t.Bools[at])
	case t.Strings != nil:
		return appendText(dst, t.Strings[at])
	}
	if math.IsNaN(t.Doubles[at]) { // missing
		return append(dst, "null"...)
	}
	return strconv.AppendFloat(dst, t.Doubles[at], 'g', -1, 64)
}

func appendText(dst []byte, s string) []byte {
	raw, err := json.Marshal(s)
	if err != nil {
		return append(dst, `""`...) // strings always encode
	}
	return append(dst, raw...)
}

// predictions are the cells of an answer.
func predictions(raw []byte) ([]json.RawMessage, error) {
	var doc struct {
		Predictions []json.RawMessage `json:"predictions"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, errors.New("the scoring server's answer is no JSON object with a list of predictions, or holds a value that is not finite")
	}
	for i, cell := range doc.Predictions {
		one, err := unwrap(cell)
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", i, err)
		}
		doc.Predictions[i] = one
	}
	return doc.Predictions, nil
}

// unwrap takes the value out of a row that the server gives as a list or, of a data frame, as an object.
func unwrap(cell json.RawMessage) (json.RawMessage, error) {
	var values []json.RawMessage
	switch {
	case len(cell) == 0:
	case cell[0] == '[':
		if err := json.Unmarshal(cell, &values); err != nil {
			return nil, err
		}
	case cell[0] == '{':
		var byName map[string]json.RawMessage
		if err := json.Unmarshal(cell, &byName); err != nil {
			return nil, err
		}
		for _, v := range byName {
			values = append(values, v)
		}
	default:
		return cell, nil
	}
	if len(values) != 1 || len(values[0]) == 0 || values[0][0] == '[' || values[0][0] == '{' {
		return nil, errors.New("the scoring server answers no single value")
	}
	return values[0], nil
}

// maxLabel limits a label in bytes: it is kept with each prediction.
const maxLabel = 1 << 10

// readAnswers is the output tensor of an answer that must hold one value for each row.
func readAnswers(raw []byte, rows int, info runtime.Info) (runtime.Tensor, error) {
	t := runtime.Tensor{Name: info.Name, Dims: []int64{int64(rows)}}
	cells, err := predictions(raw)
	if err != nil {
		return t, err
	}
	if len(cells) != rows {
		return t, fmt.Errorf("the scoring server answers %d predictions for %d rows", len(cells), rows)
	}
	for _, cell := range cells {
		switch info.Type {
		case runtime.String:
			var text string
			if json.Unmarshal(cell, &text) != nil || string(cell) == "null" {
				return t, errors.New("the scoring server answers no text, as the model's signature says")
			}
			if len(text) > maxLabel {
				return t, fmt.Errorf("the scoring server answers a label of more than %d bytes", maxLabel)
			}
			t.Strings = append(t.Strings, text)
		default:
			v, err := number(cell)
			if err != nil {
				return t, err
			}
			if info.Type == runtime.Double {
				t.Doubles = append(t.Doubles, v)
				continue
			}
			if v != math.Trunc(v) || math.Abs(v) > 1<<53 {
				return t, errors.New("the scoring server answers no whole number, as the model's signature says")
			}
			t.Int64s = append(t.Int64s, int64(v))
		}
	}
	return t, nil
}

func number(cell json.RawMessage) (float64, error) {
	switch string(cell) {
	case "true":
		return 1, nil
	case "false":
		return 0, nil
	}
	v, err := strconv.ParseFloat(string(cell), 64)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0, errors.New("the scoring server answers no finite number")
	}
	return v, nil
}
