//go:build cgo

package ort

import "github.com/yalue/onnxruntime_go"

// Available reports whether this program contains the binding.
const Available = true

// The types that package runtime uses.
type (
	Shape                               = onnxruntime_go.Shape
	Value                               = onnxruntime_go.Value
	StringTensor                        = onnxruntime_go.StringTensor
	RunOptions                          = onnxruntime_go.RunOptions
	DynamicAdvancedSession              = onnxruntime_go.DynamicAdvancedSession
	Tensor[T onnxruntime_go.TensorData] = onnxruntime_go.Tensor[T]
)

// The functions that package runtime uses.
var (
	IsInitialized                         = onnxruntime_go.IsInitialized
	SetSharedLibraryPath                  = onnxruntime_go.SetSharedLibraryPath
	InitializeEnvironment                 = onnxruntime_go.InitializeEnvironment
	WithLogLevelFatal                     = onnxruntime_go.WithLogLevelFatal
	GetVersion                            = onnxruntime_go.GetVersion
	NewSessionOptions                     = onnxruntime_go.NewSessionOptions
	NewRunOptions                         = onnxruntime_go.NewRunOptions
	NewStringTensor                       = onnxruntime_go.NewStringTensor
	NewDynamicAdvancedSessionWithONNXData = onnxruntime_go.NewDynamicAdvancedSessionWithONNXData
)

// NewTensor makes a tensor over Go memory.
func NewTensor[T onnxruntime_go.TensorData](shape Shape, data []T) (*Tensor[T], error) {
	return onnxruntime_go.NewTensor(shape, data)
}
