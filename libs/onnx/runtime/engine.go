package runtime

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	ort "github.com/yalue/onnxruntime_go"
)

// Engine selects how the library computes; the zero value is its default, on the CPU.
type Engine struct {
	// NoArena gives memory back after each run, instead of keeping it for the next: less memory, slower runs.
	NoArena bool
	// Optimization of the graph: "off", "basic", "extended" or "all"; empty is the library's default, which is less than all.
	Optimization string
	// Providers compute what they can, in this order; the rest is left to the CPU. See ProviderNames.
	Providers []string
}

var optimizations = map[string]ort.GraphOptimizationLevel{
	"off": ort.GraphOptimizationLevelDisableAll, "basic": ort.GraphOptimizationLevelEnableBasic,
	"extended": ort.GraphOptimizationLevelEnableExtended, "all": ort.GraphOptimizationLevelEnableAll,
}

var providers = map[string]func(*ort.SessionOptions) error{
	"cpu": func(*ort.SessionOptions) error { return nil }, // always there
	"cuda": func(o *ort.SessionOptions) error {
		p, err := ort.NewCUDAProviderOptions()
		if err != nil {
			return err
		}
		return errors.Join(o.AppendExecutionProviderCUDA(p), p.Destroy())
	},
	"tensorrt": func(o *ort.SessionOptions) error {
		p, err := ort.NewTensorRTProviderOptions()
		if err != nil {
			return err
		}
		return errors.Join(o.AppendExecutionProviderTensorRT(p), p.Destroy())
	},
	"openvino": func(o *ort.SessionOptions) error { return o.AppendExecutionProviderOpenVINO(nil) },
	"xnnpack":  func(o *ort.SessionOptions) error { return o.AppendExecutionProvider("XNNPACK", nil) },
}

// Check reports names that are none. Whether the library has the providers, CheckLibrary reports.
func (e Engine) Check() error {
	var faults []error
	if _, ok := optimizations[e.Optimization]; !ok && e.Optimization != "" {
		faults = append(faults, fmt.Errorf("the graph optimization %q is not known; use off, basic, extended or all", e.Optimization))
	}
	for _, name := range e.Providers {
		if providers[name] == nil {
			faults = append(faults, fmt.Errorf("the execution provider %q is not known; use one of %s", name, strings.Join(slices.Sorted(maps.Keys(providers)), ", ")))
		}
	}
	return errors.Join(faults...)
}

// CheckLibrary reports the first provider that the loaded library cannot use.
func (e Engine) CheckLibrary() error {
	opts, err := ort.NewSessionOptions()
	if err != nil {
		return fmt.Errorf("session options: %w", err)
	}
	return errors.Join(e.apply(opts), opts.Destroy())
}

func (e Engine) apply(opts *ort.SessionOptions) error {
	if err := e.Check(); err != nil {
		return err
	}
	if level, ok := optimizations[e.Optimization]; ok {
		if err := opts.SetGraphOptimizationLevel(level); err != nil {
			return err
		}
	}
	if e.NoArena {
		if err := errors.Join(opts.SetCpuMemArena(false), opts.SetMemPattern(false)); err != nil {
			return err
		}
	}
	for _, name := range e.Providers {
		if err := providers[name](opts); err != nil {
			return fmt.Errorf("ONNX Runtime %s at %s cannot use the execution provider %s: %s; use a library that has it, or leave it out",
				LibraryVersion(), LibraryPath(), name, shorten(firstLine(err.Error())))
		}
	}
	return nil
}

// firstLine leaves out the library's stack of source lines.
func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
