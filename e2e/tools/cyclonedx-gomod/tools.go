//go:build tools

// Package cyclonedxgomod pins the tool that lists the modules of a release's programs; scripts/tool.sh builds it.
package cyclonedxgomod

import _ "github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod"
