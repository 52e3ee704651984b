package mlops

// Differences returns the number of models that are not served as configured.
func (v *Views) Differences() int {
	v.serving.mu.Lock()
	defer v.serving.mu.Unlock()
	return len(v.serving.since)
}

var SeverityOf = severityOf
