// Package program simulates the programs of containers, for clusters in which none run: package samplecluster and the
// kubelet of the end-to-end tests.
//
// It replaces a registry and the software in it: which tags exist, what a program needs to start, what it serves and
// what it writes to its log. It also repeats the kubelet's messages about missing configuration.
package program

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// What a program that is only partly described accepts.
const (
	Any     = "*" // in Commands and Paths: every command, every path
	AnyPort = -1  // in Port: whichever port is probed
)

// Program describes the behaviour of one image. Its JSON holds only the parts that concern a running container.
type Program struct {
	// Repository is the image name without its tag.
	Repository string   `json:"-"`
	Tags       []string `json:"-"`
	// Private repositories answer 401 to pulls without credentials.
	Private bool `json:"-"`
	// Commands are the executables in the image that a container's command may name. Every image has a shell.
	Commands []string `json:"commands,omitempty"`
	// ChecksScripts means that a shell's script must begin with one of Commands, too.
	ChecksScripts bool `json:"checks_scripts,omitempty"`
	// Needs are the environment variables without which the program exits at once.
	Needs []string `json:"needs,omitempty"`
	// Memory is the working set; a lower limit gets the program killed.
	Memory resource.Quantity `json:"memory,omitzero"`
	// CPU is its constant processor usage.
	CPU resource.Quantity `json:"cpu,omitzero"`
	// Port and Paths define its HTTP server; zero serves nothing.
	Port  int32    `json:"port,omitempty"`
	Paths []string `json:"paths,omitempty"`
	// Peer names an environment variable that holds the host:port the program depends on.
	Peer string `json:"peer,omitempty"`
	// WaitsForPeer means that the program waits until its peer answers, then exits with success. Without a Peer it
	// waits forever.
	WaitsForPeer bool `json:"waits_for_peer,omitempty"`
	// Runs is how long the program works before it ends; zero serves until stopped.
	Runs time.Duration `json:"-"`
	// Exit is the code it ends with.
	Exit int32 `json:"-"`
	// Start are the lines written at start; Repeat is written every Every.
	Start  []string      `json:"start,omitempty"`
	Repeat string        `json:"-"`
	Every  time.Duration `json:"-"`
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

// SplitImage splits an image reference; a missing tag is "latest".
func SplitImage(image string) (repository, tag string) {
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
