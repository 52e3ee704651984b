//go:build e2e

// Package eval measures how well the assistant diagnoses: it creates the scenarios of folder scenarios on a real
// control plane, asks about each in several wordings over the assistant's HTTP API, and compares every answer with the
// truth.
//
// docs/evaluation.md describes the format of a scenario, the run and how to read its figures.
package eval

import (
	"bufio"
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/yaml"
)

//go:embed scenarios/*.yaml
var files embed.FS

// Scenario is one state of a namespace, the questions about it, and the truth.
type Scenario struct {
	ID        string `json:"id"`
	Class     string `json:"class"`     // of fault, such as image or dns
	Group     string `json:"group"`     // one of Groups: where the truth can be found
	Namespace string `json:"namespace"` // unique to the scenario
	HeldOut   bool   `json:"held_out"`  // its figures are reported apart, and no rule is tuned on it
	// Alone scenarios change shared parts of the cluster, such as nodes or webhooks. They run one after the other,
	// after all others, and their objects are removed.
	Alone bool `json:"alone"`
	// GatewayAPI scenarios need the kinds of the Gateway API; no controller serves them, so their objects include the
	// status.
	GatewayAPI bool `json:"gateway_api"`

	Workloads []Workload `json:"workloads"`
	Objects   string     `json:"objects"` // YAML documents, created before the workloads
	After     string     `json:"after"`   // YAML documents, created after the workloads
	Nodes     []Node     `json:"nodes"`
	Update    []Update   `json:"update"` // made when all pods match their description
	Delete    []string   `json:"delete"` // resource/name, deleted last: finalizers keep it
	Until     []string   `json:"until"`  // reasons of events that must exist before the questions
	// Ask maps a wording to its question. Diagnoses have at least vague, symptom, wrong_name and typo.
	Ask    map[string]string `json:"ask"`
	Expect Expect            `json:"expect"`
}

// Groups are the kinds of scenario; figures are reported by them.
var Groups = []string{"object", "log", "relation", "two", "decoy", "healthy", "count"}

// wordings are required in every scenario; others may be added.
var wordings = []string{"vague", "symptom", "wrong_name", "typo"}

// Workload runs pods, with one container unless Init or Sidecars have more.
type Workload struct {
	Kind     string            `json:"kind"` // Deployment (default), StatefulSet, DaemonSet, Job, Pod
	Replicas *int32            `json:"replicas"`
	Service  int32             `json:"service"` // port of a Service of the same name; 0: none
	Labels   map[string]string `json:"labels"`
	Notes    map[string]string `json:"annotations"`
	Pod      map[string]any    `json:"pod"`  // merged into the pod's spec
	Spec     map[string]any    `json:"spec"` // merged into the workload's spec
	Init     []Container       `json:"init"`
	Sidecars []Container       `json:"sidecars"`
	// Broken is how many of its pods match the description; the others are ready. 0: all.
	Broken int `json:"broken"`
	// Phase, Reason and Text overwrite the pod's status, as for an evicted one.
	Phase  string `json:"phase"`
	Reason string `json:"pod_reason"`
	Text   string `json:"pod_message"`
	// Pods is how many to wait for; absent: Replicas.
	Pods *int `json:"pods"`
	Container
}

// Container is one container and its behaviour.
type Container struct {
	Name     string            `json:"name"`
	Image    string            `json:"image"`
	Command  []string          `json:"command"`
	Port     int32             `json:"port"`
	Env      map[string]string `json:"env"`
	Requests map[string]string `json:"requests"`
	Limits   map[string]string `json:"limits"`
	Usage    map[string]string `json:"usage"` // what the metrics API reports: cpu, memory
	Spec     map[string]any    `json:"container"`
	// State is ready (default), unready, crash, failed, completed, waiting, or pending: nothing is written, and the
	// scheduler's status stays. Init containers are completed by default.
	State    string  `json:"state"`
	Why      string  `json:"why"`     // reason of the state, such as OOMKilled or ImagePullBackOff
	Message  string  `json:"message"` // of the state, or of the failed readiness probe
	Exit     int32   `json:"exit"`
	Restarts int32   `json:"restarts"`
	Log      string  `json:"log"`
	Previous string  `json:"previous"` // log of the run before; absent: Log
	Repeat   int     `json:"repeat"`   // how often the log's text is repeated; 0: once
	Events   []Event `json:"events"`
	// Script is really run, in a process without a network, and with access to the files of the user who runs it: run
	// only scenarios that you trust. Its output is the log and its exit code the container's: sh or python, and the
	// text.
	Script *Script `json:"script"`
}

// Script is a program whose output and exit are observed rather than written down.
type Script struct {
	Language string `json:"language"` // sh or python
	Text     string `json:"text"`
}

// Event is a kubelet's event about a pod.
type Event struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Type    string `json:"type"` // Warning by default
	Count   int32  `json:"count"`
}

// Node is an additional node of the cluster.
type Node struct {
	Name       string            `json:"name"`
	CPU        string            `json:"cpu"`
	Memory     string            `json:"memory"`
	Labels     map[string]string `json:"labels"`
	Taints     []string          `json:"taints"`     // key=value:effect
	Conditions map[string]string `json:"conditions"` // type to "Status Reason Message"
	Lost       bool              `json:"lost"`       // its kubelet falls silent after its pods run
}

// Update is a merge patch of an object.
type Update struct {
	Object      string         `json:"object"` // resource/name, such as deployments/web
	Subresource string         `json:"subresource"`
	Patch       map[string]any `json:"patch"`
}

// Expect is the truth. All terms are regular expressions that ignore case.
type Expect struct {
	Healthy bool     `json:"healthy"`
	Object  []string `json:"object"` // the object at fault
	Cause   []string `json:"cause"`  // terms of a right answer
	Not     []string `json:"not"`    // terms of no right answer
}

// Load reads all scenarios.
func Load() ([]Scenario, error) { return load(files) }

func load(from fs.FS) ([]Scenario, error) {
	names, err := fs.Glob(from, "scenarios/*.yaml")
	if err != nil {
		return nil, err
	}
	var all []Scenario
	for _, name := range names {
		text, err := fs.ReadFile(from, name)
		if err != nil {
			return nil, err
		}
		list, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, list...)
	}
	return all, check(all)
}

// parse reads the documents of one file.
func parse(text []byte) ([]Scenario, error) {
	var list []Scenario
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		j, err := yaml.ToJSON(document)
		if err != nil {
			return nil, fmt.Errorf("%.60q: %w", document, err)
		}
		if string(bytes.TrimSpace(j)) == "null" {
			continue
		}
		var s Scenario
		d := json.NewDecoder(bytes.NewReader(j))
		d.DisallowUnknownFields()
		if err := d.Decode(&s); err != nil {
			return nil, fmt.Errorf("%.60q: %w", document, err)
		}
		list = append(list, s)
	}
}

// check reports all faults of scenarios together.
func check(all []Scenario) error {
	var faults []error
	seen := map[string]string{}
	for i := range all {
		s := &all[i]
		fault := func(format string, args ...any) {
			faults = append(faults, fmt.Errorf("scenario %s: "+format, append([]any{s.ID}, args...)...))
		}
		for _, name := range []string{"id " + s.ID, "namespace " + s.Namespace} {
			if by, ok := seen[name]; ok {
				fault("%s is that of %s, too", name, by)
			}
			seen[name] = s.ID
		}
		if !slices.Contains(Groups, s.Group) {
			fault("group %q, want one of %v", s.Group, Groups)
		}
		for _, w := range wordings {
			if strings.TrimSpace(s.Ask[w]) == "" {
				fault("no question in the wording %s", w)
			}
		}
		if !s.Expect.Healthy && len(s.Expect.Cause) == 0 {
			fault("no cause is expected")
		}
		for _, term := range slices.Concat(s.Expect.Object, s.Expect.Cause, s.Expect.Not) {
			if _, err := compile(term); err != nil {
				fault("%v", err)
			}
		}
		for _, w := range s.Workloads {
			for _, c := range slices.Concat([]Container{w.Container}, w.Init, w.Sidecars) {
				if !slices.Contains([]string{"", "ready", "unready", "crash", "failed", "completed", "waiting", "pending"}, c.State) {
					fault("container %s has state %q", c.Name, c.State)
				}
			}
		}
	}
	return errors.Join(faults...)
}

func compile(term string) (*regexp.Regexp, error) { return regexp.Compile("(?is)" + term) }
