package event

// Alert is the data of alert.firing and alert.resolved.
type Alert struct {
	ID       string            `json:"id"` // "<source>:<key>"
	Source   string            `json:"source"`
	Severity string            `json:"severity"`
	Title    string            `json:"title"`
	Labels   map[string]string `json:"labels"`
}
