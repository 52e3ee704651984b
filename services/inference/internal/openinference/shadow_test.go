package openinference

import (
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/inference/internal/request"
)

// Tensors kept for a shadow share no memory with the body, so that the body can be freed.
func TestKeptTensorsShareNothingWithTheBody(t *testing.T) {
	t.Parallel()
	body := []byte(`[1,2]` + strings.Repeat(" ", 1<<20) + "abcd")
	tensors := []sent{{InferInput: request.InferInput{Name: "x", Data: body[:5]}}, {binary: body[len(body)-4:]}}
	kept, ok := keep(tensors)
	if !ok {
		t.Fatal("not kept, want it kept: the tensors have 9 bytes")
	}
	clear(body)
	if got := string(kept[0].Data) + string(kept[1].binary); got != "[1,2]abcd" {
		t.Errorf("kept %q after the body is gone, want [1,2]abcd", got)
	}
	if kept[0].binary != nil || kept[1].Data != nil {
		t.Errorf("kept %v and %v where nothing was sent, want nil", kept[0].binary, kept[1].Data)
	}
}

func TestLargeRequestsAreNotKept(t *testing.T) {
	t.Parallel()
	for name, tensors := range map[string][]sent{
		"data":         {{binary: make([]byte, maxKept)}},
		"many tensors": make([]sent, maxKept/64),
	} {
		if _, ok := keep(tensors); ok {
			t.Errorf("%s: kept, want it dropped", name)
		}
	}
}
