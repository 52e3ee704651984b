package export

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/goccy/go-yaml"
	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/libs/onnx/graph"
	"github.com/mlp-platform/platform/services/trainer/internal/frame"
	"github.com/mlp-platform/platform/services/trainer/internal/learn"
)

// The producer recorded in the graph.
const (
	producer        = "platform-trainer"
	producerVersion = "1"
)

// Files of a model folder.
const (
	ModelFile    = "model.onnx"
	MLmodelFile  = "MLmodel"
	PlatformFile = "platform.json"
)

// Meta describes the model in the files beside the graph. It holds no time and no run id: the same data and seed
// produce the same bytes.
type Meta struct {
	Model     string
	Dataset   string
	TaskType  string
	Estimator string
	Seed      int64
	Commit    string // of the model repository; may be empty
	Rows      int    // the model was fitted on
}

// Description is platform.json: the facts that the serving side needs beyond the graph.
type Description struct {
	Format        int              `json:"format"`
	Model         string           `json:"model"`
	Dataset       string           `json:"dataset"`
	TaskType      string           `json:"task_type"`
	Type          modelrepo.Type   `json:"type"`
	Estimator     string           `json:"estimator"`
	Seed          int64            `json:"seed"`
	Commit        string           `json:"modelrepo_commit,omitempty"`
	TrainingRows  int              `json:"training_rows"`
	Inputs        []Input          `json:"inputs"`
	Output        Output           `json:"output"`
	TrainingStats map[string]Stats `json:"training_stats"`
	Opset         int              `json:"opset"`
	MLOpset       int              `json:"ml_opset"`
}

// Input is a column, in the order of the graph's inputs.
type Input struct {
	Name      string         `json:"name"`
	Kind      modelrepo.Kind `json:"kind"`
	Length    int            `json:"length,omitempty"`
	DType     string         `json:"dtype"` // float32 or string
	Transform string         `json:"transform"`
}

// Output describes the model's answer.
type Output struct {
	Name   string   `json:"name"` // the target column
	Kind   string   `json:"kind"` // number or label
	Unit   string   `json:"unit,omitempty"`
	Labels []string `json:"labels,omitempty"`
	DType  string   `json:"dtype"` // float32, int64 or string
}

// Stats of a number column in the training rows; the deviation is the population's.
type Stats struct {
	Mean float64 `json:"mean"`
	Std  float64 `json:"std"`
}

func taskOf(t frame.Target) modelrepo.Type {
	if t.Anomaly {
		return modelrepo.Anomaly
	}
	if t.Class {
		return modelrepo.Classification
	}
	return modelrepo.Regression
}

// Write makes dir and puts the model's files there. It returns the SHA-256 of each file, in hex, by name.
func Write(dir string, meta Meta, p *Pipeline, m learn.Model, target frame.Target) (map[string]string, error) {
	onnx, err := encodeModel(meta, p, m, target)
	if err != nil {
		return nil, fmt.Errorf("exporting %s: %w", meta.Model, err)
	}
	return writeFiles(dir, onnx, meta, p, target)
}

// WriteGraph does the same with a graph that something else exported.
func WriteGraph(dir string, meta Meta, g *Graph) (map[string]string, error) {
	return writeFiles(dir, g.data, meta, g.pipeline, g.target)
}

func writeFiles(dir string, onnx []byte, meta Meta, p *Pipeline, target frame.Target) (map[string]string, error) {
	description, err := json.MarshalIndent(describeModel(meta, p, target), "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", PlatformFile, err)
	}
	mlmodel, err := mlmodelYAML(p, target)
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", MLmodelFile, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("exporting %s: %w", meta.Model, err)
	}
	files := map[string]string{}
	for name, data := range map[string][]byte{ModelFile: onnx, MLmodelFile: mlmodel, PlatformFile: append(description, '\n')} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return nil, fmt.Errorf("exporting %s: %w", meta.Model, err)
		}
		sum := sha256.Sum256(data)
		files[name] = hex.EncodeToString(sum[:])
	}
	return files, nil
}

func describeModel(meta Meta, p *Pipeline, target frame.Target) Description {
	d := Description{
		Format: 1, Model: meta.Model, Dataset: meta.Dataset, TaskType: meta.TaskType, Type: taskOf(target),
		Estimator: meta.Estimator, Seed: meta.Seed, Commit: meta.Commit, TrainingRows: meta.Rows,
		Output:        Output{Name: target.Name, Kind: "number", Unit: target.Unit, DType: "float32"},
		TrainingStats: map[string]Stats{},
		Opset:         graph.Opset, MLOpset: graph.MLOpset,
	}
	if target.Class {
		d.Output.Kind, d.Output.Labels, d.Output.DType = "label", target.Labels, labelType(target)
	}
	for _, f := range p.features {
		in := Input{Name: f.Column, Kind: f.Kind, DType: "float32", Transform: f.Transform}
		switch f.Kind {
		case modelrepo.Category:
			in.DType = "string"
		case modelrepo.Vector:
			in.Length = f.Length
		case modelrepo.Number:
			d.TrainingStats[f.Column] = Stats{f.mean, f.std}
		}
		d.Inputs = append(d.Inputs, in)
	}
	return d
}

func labelType(target frame.Target) string {
	if _, whole := wholeLabels(target.Labels); whole {
		return "int64"
	}
	return "string"
}

// mlmodel is MLflow's model file. Its Python client needs tensor types, not column types, to feed a graph with an input
// per column.
type mlmodel struct {
	Flavors struct {
		ONNX struct {
			Data      string   `yaml:"data"`
			Providers []string `yaml:"providers"`
		} `yaml:"onnx"`
		Python struct {
			Data   string `yaml:"data"`
			Loader string `yaml:"loader_module"`
		} `yaml:"python_function"`
	} `yaml:"flavors"`
	Signature struct {
		Inputs  string `yaml:"inputs"`
		Outputs string `yaml:"outputs"`
	} `yaml:"signature"`
}

type tensorSpec struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Spec struct {
		DType string `json:"dtype"`
		Shape []int  `json:"shape"`
	} `json:"tensor-spec"`
}

func newTensorSpec(name, dtype string, shape ...int) tensorSpec {
	s := tensorSpec{Name: name, Type: "tensor"}
	if dtype == "string" {
		dtype = "str" // numpy's name
	}
	s.Spec.DType, s.Spec.Shape = dtype, shape
	return s
}

func mlmodelYAML(p *Pipeline, target frame.Target) ([]byte, error) {
	var m mlmodel
	m.Flavors.ONNX.Data, m.Flavors.ONNX.Providers = ModelFile, []string{"CPUExecutionProvider"}
	m.Flavors.Python.Data, m.Flavors.Python.Loader = ModelFile, "mlflow.onnx"
	var in []tensorSpec
	for _, f := range p.features {
		switch f.Kind {
		case modelrepo.Category:
			in = append(in, newTensorSpec(f.Column, "string", -1, 1))
		default:
			in = append(in, newTensorSpec(f.Column, "float32", -1, f.width()))
		}
	}
	out := []tensorSpec{newTensorSpec(Prediction, "float32", -1, 1)}
	if target.Class {
		out = []tensorSpec{newTensorSpec(Label, labelType(target), -1), newTensorSpec(Probabilities, "float32", -1, len(target.Labels))}
	}
	for _, s := range []struct {
		to    *string
		specs []tensorSpec
	}{{&m.Signature.Inputs, in}, {&m.Signature.Outputs, out}} {
		data, err := json.Marshal(s.specs)
		if err != nil {
			return nil, err
		}
		*s.to = string(data)
	}
	return yaml.MarshalWithOptions(m, yaml.UseSingleQuote(true))
}
