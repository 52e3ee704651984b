//go:build !cgo

package ort

import "errors"

// Available reports whether this program contains the binding.
const Available = false

var errAbsent = errors.New("this program contains no ONNX Runtime binding")

// The types have the methods that package runtime calls. No value of them exists: every constructor fails.
type (
	Shape []int64
	Value interface {
		Destroy() error
		GetShape() Shape
	}
	Tensor[T any]          struct{}
	StringTensor           struct{}
	SessionOptions         struct{}
	RunOptions             struct{}
	DynamicAdvancedSession struct{}
)

func (*Tensor[T]) Destroy() error  { return errAbsent }
func (*Tensor[T]) GetShape() Shape { return nil }
func (*Tensor[T]) GetData() []T    { return nil }

func (*StringTensor) Destroy() error                 { return errAbsent }
func (*StringTensor) GetShape() Shape                { return nil }
func (*StringTensor) GetContents() ([]string, error) { return nil, errAbsent }
func (*StringTensor) SetContents([]string) error     { return errAbsent }

func (*SessionOptions) Destroy() error                             { return errAbsent }
func (*SessionOptions) SetIntraOpNumThreads(int) error             { return errAbsent }
func (*SessionOptions) SetInterOpNumThreads(int) error             { return errAbsent }
func (*SessionOptions) AddSessionConfigEntry(string, string) error { return errAbsent }

func (*RunOptions) Destroy() error        { return errAbsent }
func (*RunOptions) Terminate() error      { return errAbsent }
func (*RunOptions) UnsetTerminate() error { return errAbsent }

func (*DynamicAdvancedSession) Destroy() error { return errAbsent }
func (*DynamicAdvancedSession) RunWithOptions([]Value, []Value, *RunOptions) error {
	return errAbsent
}

func IsInitialized() bool                     { return false }
func SetSharedLibraryPath(string)             {}
func WithLogLevelFatal() struct{}             { return struct{}{} }
func InitializeEnvironment(...struct{}) error { return errAbsent }
func GetVersion() string                      { return "" }

func NewSessionOptions() (*SessionOptions, error)     { return nil, errAbsent }
func NewRunOptions() (*RunOptions, error)             { return nil, errAbsent }
func NewStringTensor(Shape) (*StringTensor, error)    { return nil, errAbsent }
func NewTensor[T any](Shape, []T) (*Tensor[T], error) { return nil, errAbsent }
func NewDynamicAdvancedSessionWithONNXData([]byte, []string, []string, *SessionOptions) (*DynamicAdvancedSession, error) {
	return nil, errAbsent
}
