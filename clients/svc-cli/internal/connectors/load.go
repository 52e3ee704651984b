package connectors

import (
	"errors"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/libs/evidence/canon"
)

// Load reads a profile file: a regular file of at most 2 MiB.
func Load(path string) ([]Connector, error) {
	v, err := command.ReadValue(path)
	if err != nil {
		return nil, profileFault(err)
	}
	return Parse(v)
}

// profileFault maps a fault of the file to the code that profiles have for it.
func profileFault(err error) error {
	f := *command.FaultOf(err)
	var syntax *canon.SyntaxError
	if f.Code == command.InputReadError || errors.As(err, &syntax) && syntax.Reason == canon.TooLarge {
		f.Code = ProfileReadError
	}
	return &f
}
