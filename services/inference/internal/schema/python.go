package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Answer is the kind of a Python model's answer for a row.
type Answer string

// The kinds of answers. Whole numbers, true and false are class labels, as a classifier's are; a Python regressor answers
// floating-point numbers.
const (
	AnswerUnstated Answer = ""
	AnswerNumber   Answer = "number"
	AnswerClass    Answer = "class"
	AnswerText     Answer = "text"
)

// unnamedInput is the column of a signature whose only tensor has no name.
const unnamedInput = "input"

// HasGraph reports whether the artifact has an ONNX model, which needs no Python.
func HasGraph(dir fs.FS) (bool, error) {
	m, err := readMLmodel(dir)
	return m.Flavors["onnx"] != nil, err
}

// ReadPython takes columns and answer of a model that Python computes from an artifact folder. The columns are complete.
func ReadPython(dir fs.FS) (*Schema, Answer, error) {
	m, err := readMLmodel(dir)
	if err != nil {
		return nil, "", err
	}
	if m.Flavors["python_function"] == nil {
		return nil, "", fmt.Errorf("%w: MLmodel has no python_function, which a scoring server needs", ErrFlavor)
	}
	s := &Schema{}
	if err := s.readColumns(dir, m); err != nil {
		return nil, "", err
	}
	if s.Tensors && len(s.Columns) == 1 && s.Columns[0].Name == "" {
		s.Columns[0].Name = unnamedInput
	} else {
		s.Tensors = false
	}
	var answer Answer
	switch {
	case s.Output.Kind == Value:
		answer = AnswerNumber
	case s.Output.Kind == Label && slices.ContainsFunc(s.Output.Labels, func(l any) bool { _, text := l.(string); return text }):
		answer = AnswerText
	case s.Output.Kind == Label:
		answer = AnswerClass
	case m.Signature != nil && m.Signature.Outputs != "":
		if answer, err = readAnswer([]byte(m.Signature.Outputs)); err != nil {
			return nil, "", fmt.Errorf("MLmodel: signature.outputs: %w", err)
		}
	}
	return s, answer, s.Seal()
}

func readAnswer(raw []byte) (Answer, error) {
	var specs list[spec]
	if err := json.Unmarshal(raw, &specs); err != nil {
		return "", err
	}
	if len(specs) != 1 {
		return "", fmt.Errorf("there are %d outputs; an answer is one value a row", len(specs))
	}
	kind := specs[0].Type
	if t := specs[0].Tensor; kind == "tensor" {
		if t == nil {
			return "", errors.New("tensor-spec is missing")
		}
		if len(t.Shape) < 1 || len(t.Shape) > 2 || len(t.Shape) == 2 && t.Shape[1] != 1 {
			return "", fmt.Errorf("the output has shape %v; an answer is one value a row", t.Shape)
		}
		kind = t.Dtype
	}
	switch {
	case kind == "double", strings.HasPrefix(kind, "float"):
		return AnswerNumber, nil
	case kind == "long", kind == "integer", kind == "boolean", kind == "bool", strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"):
		return AnswerClass, nil
	case kind == "string", kind == "str", kind == "object", strings.HasPrefix(kind, "<U"):
		return AnswerText, nil
	}
	return "", fmt.Errorf("an answer of type %q is not served", kind)
}
