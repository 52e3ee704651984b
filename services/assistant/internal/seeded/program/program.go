// Package program describes what the images of the seeded cluster do when a container runs them.
//
// It stands in for a registry and for the software in it: which tags exist, what a program needs to start, what it serves
// and what it writes to its log.
package program

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Program is what one image does.
type Program struct {
	// Repository is the image name without its tag.
	Repository string
	Tags       []string
	// Private repositories answer 401 to pulls without credentials.
	Private bool
	// Commands are the executables in the image that a container's command may name. Every image has a shell.
	Commands []string
	// Needs are the environment variables without which the program ends at once.
	Needs []string
	// Memory is the working set; a lower limit gets the program killed.
	Memory resource.Quantity
	// CPU is what it uses of processors all the time.
	CPU resource.Quantity
	// Port and Paths are what the program serves over HTTP; zero serves nothing.
	Port  int32
	Paths []string
	// Peer names an environment variable that holds the host:port the program depends on.
	Peer string
	// WaitsForPeer says that the program ends well as soon as its peer answers, and waits until then.
	WaitsForPeer bool
	// Runs is how long the program works before it ends; zero serves until stopped.
	Runs time.Duration
	// Exit is the code it ends with.
	Exit int32
	// Start are the lines written at start; Repeat is written over and over.
	Start  []string
	Repeat string
	Every  time.Duration
}

// Registry knows programs by image name.
type Registry struct{ programs map[string]*Program }

// NewRegistry makes a registry of programs.
func NewRegistry(list []Program) *Registry {
	r := &Registry{programs: map[string]*Program{}}
	for i := range list {
		r.programs[list[i].Repository] = &list[i]
	}
	return r
}

// Split takes an image reference apart; a missing tag is "latest".
func Split(image string) (repository, tag string) {
	image, _, _ = strings.Cut(image, "@")
	slash := strings.LastIndex(image, "/")
	if colon := strings.LastIndex(image, ":"); colon > slash {
		return image[:colon], image[colon+1:]
	}
	return image, "latest"
}

// Find returns the program of a repository.
func (r *Registry) Find(repository string) (*Program, bool) {
	p, ok := r.programs[repository]
	return p, ok
}
