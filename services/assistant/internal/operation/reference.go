package operation

// Reference names the source of a result, so that an answer can cite it.
type Reference struct {
	// Cluster is the one that the object is in, where clusters are configured by name.
	Cluster   string `json:"cluster,omitempty"`
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// ResourceVersion is the version of the object that was read; empty if the source does not report it.
	ResourceVersion string `json:"resource_version,omitempty"`
	// Container and Line are set for logs. Lines are counted from 1 in the part of the log that was read.
	Container string `json:"container,omitempty"`
	Line      int    `json:"line,omitempty"`
}

// Cite returns the reference to an object in a version.
func (r Ref) Cite(resourceVersion string) Reference {
	return Reference{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, ResourceVersion: resourceVersion}
}
